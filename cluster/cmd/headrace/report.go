package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

const reportLong = `Make a report of a job, at any time: what its finished parts have, what failed with examples, where the time of
items went, cost by model, settings and the proof. Of a job under way, it also has the workers and limits as they are now.
Nothing is changed, and nothing but the report is written.

-o F.html is one file of at most 200 KB that loads nothing and runs no script; -o F.md is Markdown, and -o F.json has the
figures. Without -o the Markdown goes to standard output. The file may also stand behind the job, as in headrace ctl.

A cluster keeps no timeline of a job, so there are no plots. Answers of parts under way are not counted yet.`

// newReportCommand makes headrace jobs report.
func (f *jobsFlags) newReportCommand(w *world.World) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "report JOB [FILE]", Short: "Make a report of a job: a page, Markdown, or JSON", Long: reportLong,
		Example: `  headrace jobs report JOB -o report.html
  headrace jobs report JOB >> $GITHUB_STEP_SUMMARY
  headrace jobs report JOB --json | jq .failures`,
		Args: cobra.RangeArgs(1, 2), //nolint:mnd // the job, and a file
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && file != "" {
				return exit.End(exit.Usage, "%s and --output %s: name one file", args[1], file)
			}
			if len(args) > 1 {
				file = args[1]
			}
			if err := report.CheckForm(file, f.asJSON); err != nil {
				return err
			}
			return f.with(w, cmd, func(ctx context.Context, _ *cobra.Command, n *node.Node) error {
				r, err := reportOf(ctx, w, n, args[0])
				if err != nil {
					return err
				}
				return r.Put(w, file, f.asJSON)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write: its name ends in .html, .md or .json (default: Markdown to standard output)")
	settings.NameValues(cmd.Flags(), map[string]string{"output": "FILE"})
	return cmd
}

// reportOf makes the report of a job. It reads the record first, so that a job which ends meanwhile is one under way.
func reportOf(ctx context.Context, w *world.World, n *node.Node, name string) (*report.Report, error) {
	name, err := n.Named(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := n.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	j := reportedJob(&s)
	if j.GoesOn {
		at, err := n.Stand(ctx, name, standWait)
		if err != nil {
			return nil, err
		}
		addStanding(j, at)
	}
	return report.OfJob(w, j, func(take func([]byte) error) error {
		err := n.Lines(ctx, &s.Record, take)
		j.Whole = j.Whole && err == nil
		if errors.Is(err, node.ErrLost) {
			j.Why, j.Next = strings.TrimPrefix(err.Error(), "node: "), "headrace jobs resume "+name
			return nil
		}
		return err
	})
}

// reportedJob returns what the store has of a job besides its lines.
func reportedJob(s *node.JobStatus) *report.Job {
	r := &s.Record
	j := &report.Job{
		Name: r.Job, State: stateOf(r), Why: r.Why, Round: r.Round, Parts: s.Parts, OfParts: s.Chunks,
		GoesOn: r.GoesOn(), Whole: r.State == job.Done,
		Input: firstInput(r), Output: r.Output, Errors: r.Errors, Provider: r.Asking.Provider, Settings: settings.Shown(settingsOf(r), "job"),
	}
	if j.Errors == "" && j.Output != "" {
		j.Errors = journal.ErrorsPath(j.Output)
	}
	if s.Chunks > 0 {
		j.Items = &s.Items
	}
	if len(r.Caps) > 0 {
		usd := r.Cap().USD()
		j.CapUSD = &usd
	}
	if r.State == job.Canceled || r.State == job.Stopped || r.IsPaused() {
		j.Next = "headrace jobs resume " + r.Job
		if more := greaterCap(r); more != "" {
			j.Next += " --max-cost " + more
		}
	}
	return j
}

// settingsOf returns the settings with which a job was submitted, by their names.
func settingsOf(r *job.Record) map[string]string {
	if r.Submission != nil {
		return r.Submission.Settings
	}
	all := map[string]string{"weight": fmt.Sprint(r.Weight)}
	for name, value := range r.Asking.Settings {
		if name != run.JobLanes && name != run.JobPrices { // texts of files
			all[name] = value
		}
	}
	return all
}

// addStanding adds what workers and keeper say of a job under way.
func addStanding(j *report.Job, s *node.Standing) {
	by, limit := boundOf(s)
	if j.HeldBy = strings.ReplaceAll(by, "_", " "); limit != "" {
		j.HeldBy += " (" + plainName(limit, s.Limits) + ")"
	}
	j.Ended, j.InFlight, j.Keeper = s.Done, s.InFlight, s.Keeper
	for i := range s.Workers {
		w := &s.Workers[i]
		j.Workers = append(j.Workers, report.JobWorker{
			Name: w.Name, InFlight: w.Jobs[j.Name].InFlight, Concurrency: w.Concurrency, Items: int(w.Done), Calls: int(w.Calls), Refused: int(w.Refused),
			CannotWork: w.Refuses[j.Name].Why,
		})
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		j.Limits = append(j.Limits, report.JobLimit{Name: plainName(l.Name, s.Limits), Phase: l.Phase, Pace: paceOf(l), HeldBy: heldByOf(l), Known: knownOf(l)})
	}
}
