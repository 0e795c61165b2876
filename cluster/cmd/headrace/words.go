package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
)

// The words of headrace ctl stand behind headrace jobs, too, in the same form: JOB is there what OUTPUT is of a run.

// addCtlCommands adds a command for each word of headrace ctl that has arguments. Words that have no meaning for a job get
// a hidden command that says what to do instead.
func (f *jobsFlags) addCtlCommands(w *world.World, cmd *cobra.Command) {
	add := func(use, short, long string, do func(ctx context.Context, cmd *cobra.Command, n *node.Node, name string, c *ctl.Command) error) {
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.MinimumNArgs(1)}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			word, err := ctl.Parse(append([]string{c.Name()}, args[1:]...))
			if err != nil {
				return exit.Refuse("%s", err)
			}
			return f.with(w, cmd, func(ctx context.Context, cmd *cobra.Command, n *node.Node) error {
				name, err := n.Named(ctx, args[0])
				if err != nil {
					return err
				}
				return do(ctx, cmd, n, name, &word)
			})
		}
		cmd.AddCommand(c)
	}
	add("limit JOB [LANE] rpm=N tpm=N input-tpm=N output-tpm=N", "Set limits that a job is under, for all that use them; 0 learns one again", limitLong, f.limit)
	add("max-cost JOB USD", "Set what the calls of a job may cost in all, if it was submitted with --max-cost", maxCostLong, f.setMaxCost)
	add("reset JOB [LANE]", "Let the limits that a job is under flow again at once, with nothing held against them", "", f.resetOf)
	for word, instead := range notOfJobs {
		cmd.AddCommand(&cobra.Command{
			Use: word + " JOB", Short: "Not of a job: " + instead, Hidden: true,
			RunE: func(*cobra.Command, []string) error { return exit.Refuse("%s: it is not of a job: %s", word, instead) },
		})
	}
}

// notOfJobs says of words of headrace ctl that have no meaning for a job what to do instead.
var notOfJobs = map[string]string{
	ctl.Concurrency: "each worker has its own -c, for all its jobs; headrace limits set LIMIT --concurrency N bounds the calls in flight of all workers under a limit",
	ctl.LogLevel:    "each worker has its own log: start it with --log-level and --log-file",
}

const limitLong = `Set limits that a job is under: they hold for all workers, jobs and servers that use them, from the next call on. Limits
that are not named stay. LANE is the name of a limit in headrace limits ls or headrace jobs status; it is needed if the job has several. The
store keeps them, as headrace limits set does.`

const maxCostLong = `Set what the calls of a job may cost in all, in USD. It may be more than before, or less. Each worker learns it when it next draws
money, which is each five-hundredth of the greatest cap so far. What workers have drawn counts as spent: if that is as much, the job stops at once, as
at its cap (exit code 4).`

// limit sets a limit of a job for all that use it, and prints the change.
func (f *jobsFlags) limit(ctx context.Context, cmd *cobra.Command, n *node.Node, name string, c *ctl.Command) error {
	limits, err := f.limitsOf(ctx, n, name, c.Lane)
	if err != nil {
		return err
	}
	if len(limits) > 1 {
		return exit.Refuse("limit: name one, as the job is under several: %s", strings.Join(limits, ", "))
	}
	var from, to machine.LaneConfig
	err = n.ChangeLimit(ctx, limits[0], standWait, func(lane *machine.LaneConfig) {
		from = *lane
		lane.Limits = c.On(lane.Limits)
		to = *lane
	})
	if err != nil {
		return refused(err)
	}
	a := ctl.Answer{Text: changeText("limits", limits[0], ctl.LimitWords(from.Limits), ctl.LimitWords(to.Limits))}
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(a)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), a.Text)
	return err
}

// resetOf vouches for the limits of a job. The keeper does not answer.
func (f *jobsFlags) resetOf(ctx context.Context, cmd *cobra.Command, n *node.Node, name string, c *ctl.Command) error {
	limits, err := f.limitsOf(ctx, n, name, c.Lane)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		if err := f.reset(cmd, n, limit); err != nil {
			return err
		}
	}
	return nil
}

// limitsOf returns the names of the limits that a job is under. If meant is set it returns only the limit of that name,
// whole or as people see it. If its user has not named a limit, the keeper knows the limits from the job's first call on.
func (f *jobsFlags) limitsOf(ctx context.Context, n *node.Node, name, meant string) (names []string, err error) {
	s, err := n.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	all := []bus.LimitPicture{{Name: s.Record.Limit}}
	if s.Record.Limit == "" {
		if all, err = limitsOfKeeper(ctx, n, name); err != nil {
			return nil, err
		}
	}
	var known []string
	for i := range all {
		is, shown := all[i].Name, plainName(all[i].Name, all)
		if known = append(known, shown); meant == "" || meant == is || meant == shown {
			names = append(names, is)
		}
	}
	switch {
	case len(known) == 0:
		return nil, exit.Refuse("no limit of job %s is known yet, as no worker calls for it: headrace limits set LIMIT sets one by its name", name)
	case len(names) == 0:
		return nil, exit.Refuse("limit %q is not of job %s: want %s", meant, name, strings.Join(known, ", "))
	}
	return names, nil
}

// limitsOfKeeper asks the keeper for the limits that a job is under. Without a keeper there are none.
func limitsOfKeeper(ctx context.Context, n *node.Node, name string) ([]bus.LimitPicture, error) {
	waiting, stop := context.WithTimeout(ctx, keeperWait)
	defer stop()
	o, err := n.Office(waiting, standWait)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return slices.DeleteFunc(o.Limits, func(l bus.LimitPicture) bool {
		return !slices.ContainsFunc(l.Jobs, func(j bus.JobPicture) bool { return j.Job == name })
	}), ctx.Err()
}

// setMaxCost sets the cap of a job, and prints the change and the job's state.
func (f *jobsFlags) setMaxCost(ctx context.Context, cmd *cobra.Command, n *node.Node, name string, c *ctl.Command) error {
	before, err := n.SetMaxCost(ctx, name, limiter.USD(c.USD))
	if err != nil {
		return err
	}
	if !f.asJSON {
		fmt.Fprintln(cmd.OutOrStdout(), changeText("max-cost", "", words.Money(before.USD()), words.Money(c.USD)))
	}
	s, err := n.Job(ctx, name)
	if err != nil {
		return err
	}
	return f.show(cmd, s)
}

// changeText describes a change of a setting in the same words as headrace ctl.
func changeText(what, of, from, to string) string {
	e := event.Changed{What: what, Lane: of, From: from, To: to, By: "jobs"}
	text, _ := strings.CutSuffix(e.Say(), ", by headrace jobs")
	return text
}
