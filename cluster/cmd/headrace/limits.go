package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/world"
)

// keeperWait bounds the wait for the keeper's word on the limits. A keeper sends one each second, and
// another keeper may have to take over first.
const keeperWait = 10 * time.Second

// limitFlags are the flags of limits set that describe a limit.
var limitFlags = []string{"rpm", "tpm", "input-tpm", "output-tpm", "concurrency"}

// newLimitsCommand makes headrace limits, with its commands ls, set and reset.
func newLimitsCommand(w *world.World) *cobra.Command {
	f := &jobsFlags{}
	var lane machine.LaneConfig
	cmd := &cobra.Command{
		Use: "limits COMMAND", Short: "See and change the limits of a cluster", Long: "See and change the limits of a cluster. Without a word it lists them.", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.with(w, cmd, f.limits) },
	}
	f.register(cmd.PersistentFlags(), "cluster")
	cmd.PersistentFlags().BoolVar(&f.asJSON, "json", false, "print JSON")
	list := &cobra.Command{Use: "ls", Short: "List the limits, and how they stand", Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return f.with(w, cmd, f.limits) }}
	reset := &cobra.Command{Use: "reset LIMIT", Short: "Vouch for a limit: it flows again, with nothing held against it", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return f.with(w, cmd, func(_ context.Context, cmd *cobra.Command, n *node.Node) error { return f.reset(cmd, n, args[0]) })
	}}
	set := &cobra.Command{Use: "set LIMIT", Short: "Say what a limit lets through, also before a worker is there", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(limitFlags, cmd.Flags().Changed) {
			return exit.End(exit.Usage, "nothing to set for limit %s: give --rpm, or another of the flags in %s --help", args[0], cmd.CommandPath())
		}
		if err := lane.Validate(); err != nil {
			return exit.EndOf(exit.Usage, err)
		}
		return f.with(w, cmd, func(ctx context.Context, cmd *cobra.Command, n *node.Node) error {
			err := refused(n.SetLimit(ctx, args[0], lane))
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "limit %s is set, and kept in the store\n", args[0])
			}
			return err
		})
	}}
	fs := set.Flags()
	fs.Float64Var(&lane.Limits.RPM, "rpm", 0, "requests a minute; 0 learns it")
	fs.Float64Var(&lane.Limits.TPM, "tpm", 0, "tokens a minute; 0 learns it")
	fs.Float64Var(&lane.Limits.InputTPM, "input-tpm", 0, "input tokens a minute, where they are counted apart")
	fs.Float64Var(&lane.Limits.OutputTPM, "output-tpm", 0, "output tokens a minute, likewise")
	fs.IntVar(&lane.Window, "concurrency", 0, "calls in flight of all workers together; 0: no limit")
	cmd.AddCommand(list, set, reset)
	return cmd
}

// refused turns an error of a role without permission into a usage error.
func refused(err error) error {
	if errors.Is(err, bus.ErrRole) {
		return exit.EndOf(exit.Usage, err)
	}
	return err
}

// reset asks the keeper, which does not answer: a name that it does not know changes nothing.
func (f *jobsFlags) reset(cmd *cobra.Command, n *node.Node, limit string) error {
	err := refused(n.ResetLimit(limit))
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "the keeper has been asked to reset limit %s; headrace limits ls shows how it stands\n", limit)
	}
	return err
}

// limits prints the keeper, the workers, and the state of all limits. It waits up to keeperWait
// for a keeper to report.
func (f *jobsFlags) limits(ctx context.Context, cmd *cobra.Command, n *node.Node) error {
	ctx, stop := context.WithTimeout(ctx, keeperWait)
	defer stop()
	o, err := n.Office(ctx, standWait)
	if err != nil {
		return unheard(err)
	}
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(o)
	}
	return printOffice(cmd.OutOrStdout(), o.Keeper, o.Epoch, o.Limits, o.Workers)
}

// unheard explains why the keeper's report did not come. Only the end of keeperWait means that there is no keeper.
func unheard(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return exit.End(exit.Stopped, "no keeper has said how limits stand within %v: is a worker there?", keeperWait)
	}
	return err
}
