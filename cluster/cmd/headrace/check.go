package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/world"
)

const checkLong = `Test bus and store from this machine, and show for each item whether it is safe, and why not.

The bus: can it be reached, does it accept us (TLS, token), has it JetStream, does it return stored messages, how long
does that take, and how many hubs are there? The times that all processes of the cluster must share. The store: does
exactly one of two writers of one name win? Clocks are not compared and need not be right.

Exit codes: 0 everything is safe; 1 something is not; 2 no cluster was named.`

// newClusterCommand makes headrace cluster, with its commands check and take-over.
func newClusterCommand(w *world.World) *cobra.Command {
	f, asJSON := &joinFlags{}, false
	cmd := &cobra.Command{Use: "cluster COMMAND", Short: "Check whether bus and store are safe", Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	check := &cobra.Command{
		Use: "check --cluster LINE", Short: "Test bus and store, and show what is not safe, and why", Long: checkLong, Args: noArguments,
		Example: "  headrace cluster check --cluster 'nats://TOKEN@…'\n  headrace cluster check --store s3://bucket/headrace --json   # with HEADRACE_CLUSTER set",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.check(cmd.Context(), cmd, w, asJSON) },
	}
	f.register(check.Flags(), "cluster")
	check.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(check, newTakeOverCommand(w))
	return cmd
}

const takeOverLong = `Name the hub of the line to join by as the one hub of the store.

Use it where the earlier hub is gone for good, or its token was lost or replaced. Workers of the earlier hub
finish their calls within seconds and end with exit code 2. Jobs, results and limits are in the store and stay.`

func newTakeOverCommand(w *world.World) *cobra.Command {
	f := &joinFlags{}
	cmd := &cobra.Command{
		Use: "take-over --cluster LINE", Short: "Name another hub for the store", Long: takeOverLong, Args: noArguments,
		Example: "  headrace cluster take-over --cluster 'nats://TOKEN@new-hub:4222…'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.takeOver(cmd.Context(), cmd, w) },
	}
	f.register(cmd.Flags(), "cluster")
	return cmd
}

// takeOver names the hub of the line as the one hub of the store, and prints the name of the one
// before.
func (f *joinFlags) takeOver(ctx context.Context, cmd *cobra.Command, w *world.World) error {
	cfg, err := f.config(w, speakerOf(cmd))
	if err != nil {
		return err
	}
	cfg.TakesOver = true
	ctx, stop := context.WithTimeout(ctx, reachWait)
	defer stop()
	n, err := node.Join(ctx, cfg)
	if err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	before, err := n.TakeOver(ctx)
	if err = errors.Join(err, n.Close()); err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	if before == "" {
		before = "none, or this one"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the store belongs to this hub now; before: %s\n", before)
	return nil
}

// check prints all findings, as lines or as JSON. It ends with [exit.ItemsFailed] if one of them
// is unsafe.
func (f *joinFlags) check(ctx context.Context, cmd *cobra.Command, w *world.World, asJSON bool) error {
	cfg, err := f.config(w, speakerOf(cmd))
	if err != nil {
		return err
	}
	found := node.Check(ctx, cfg, rand.New(rand.NewPCG(w.Chance, 0)), store.ProbeConfig{})
	if asJSON {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(found); err != nil {
			return err
		}
	} else if err := printChecked(cmd, found); err != nil {
		return err
	}
	unsafe := 0
	for _, c := range found {
		if c.Verdict == node.Unsafe {
			unsafe++
		}
	}
	if unsafe > 0 {
		return exit.End(exit.ItemsFailed, "not safe: %d of %d things that were looked at must be put right first", unsafe, len(found))
	}
	return nil
}

// printChecked prints a line for each finding, and its consequence below it.
func printChecked(cmd *cobra.Command, found []node.Checked) error {
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, c := range found {
		verdict := string(c.Verdict)
		if c.Verdict == node.Unsafe {
			verdict = "UNSAFE"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Part, verdict, c.What)
		if c.Why != "" {
			fmt.Fprintf(t, "\t\t%s\n", c.Why)
		}
	}
	return t.Flush()
}
