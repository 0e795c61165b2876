package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
)

// jobsFlags are the flags of all commands about jobs.
type jobsFlags struct {
	joinFlags
	output, errors string
	asJSON         bool
	partial, close bool
	maxCost        usdFlag
}

// newJobsCommand makes headrace jobs and its commands. A person may name a job as submit --job
// did; each command gets the job's own name.
func newJobsCommand(w *world.World) *cobra.Command {
	f := &jobsFlags{}
	cmd := &cobra.Command{
		Use:   "jobs COMMAND",
		Short: "See and steer the jobs of a cluster",
		Long:  jobsLong,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.with(w, cmd, f.list) },
	}
	f.register(cmd.PersistentFlags(), "cluster")
	cmd.PersistentFlags().BoolVar(&f.asJSON, "json", false, "print JSON")
	addCommand := func(use, short string, do func(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: cobra.MinimumNArgs(1)}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			return f.with(w, cmd, func(ctx context.Context, cmd *cobra.Command, n *node.Node) error {
				named := len(args)
				if c.Name() == "add" {
					named = 1 // what follows are inputs
				}
				for i, name := range args[:named] {
					var err error
					if args[i], err = n.Named(ctx, name); err != nil {
						return err
					}
				}
				return do(ctx, cmd, n, args)
			})
		}
		cmd.AddCommand(c)
		return c
	}
	list := &cobra.Command{Use: "ls", Short: "List the jobs", Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return f.with(w, cmd, f.list) }}
	cmd.AddCommand(list)
	oneArgument := cobra.ExactArgs(1)
	addCommand("status JOB", "Show how a job stands", f.status).Args = oneArgument
	display := run.NewSettings(w, settings.Faces|settings.Says)
	watch := addCommand("watch JOB", "Show how a job stands, until it ends", func(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
		return f.watch(ctx, cmd, display, n, args[0])
	})
	watch.Long, watch.Args = watchLong, oneArgument
	display.Register(watch)
	addCommand("cancel JOB", "End a job: calls in flight are saved, and saved results stay", steerCommand(func(n *node.Node) change { return n.Cancel }))
	addCommand("drain JOB", "The same as cancel, in the word of headrace ctl", steerCommand(func(n *node.Node) change { return n.Cancel }))
	addCommand("pause JOB", "Start no further call of a job until it is resumed; calls in flight finish", steerCommand(func(n *node.Node) change { return n.Pause }))
	resume := addCommand("resume JOB", "Resume a job that was paused, canceled or stopped, or whose results are no longer whole", steerCommand(f.resume))
	resume.Flags().Var(&f.maxCost, "max-cost", "most that its calls may cost in all, in USD, what they have cost so far included (default: as before)")
	addCommand("retry-failed JOB", "Retry the failed items of a job that is done", steerCommand(func(n *node.Node) change { return n.RetryFailed }))
	addCommand("rm JOB", "Delete jobs that have ended, and their results in the store", f.remove)
	add := addCommand("add JOB INPUT…", "Add inputs to a job that was submitted with --open", f.add)
	add.Flags().BoolVar(&f.close, "close", false, "no further inputs will come")
	f.addCtlCommands(w, cmd)
	cmd.AddCommand(f.newReportCommand(w))
	fetch := addCommand("fetch JOB", "Make the files of a job that headrace run would make", f.fetch)
	fetch.Args = oneArgument
	fetch.Flags().StringVarP(&f.output, "output", "o", "", "where results go: a file, or s3://bucket/results.jsonl (default: as it was submitted)")
	fetch.Flags().StringVar(&f.errors, "errors", "", "file for failed items (default: OUTPUT with .errors before its ending)")
	fetch.Flags().BoolVar(&f.partial, "partial", false, "take the finished parts of a job that is not done")
	return cmd
}

const jobsLong = `See and steer the jobs of a cluster. Without a word it lists them.

Words of headrace ctl have the same form here: status, pause, resume, drain, limit, max-cost, reset, report. A change reaches all
workers. Two words are not of a job: each worker has its own -c (concurrency) and its own log (log-level).`

// with joins the cluster, runs do with the node, and leaves. An error of do ends the command as a wrong usage, unless it
// has an exit code of its own.
func (f *jobsFlags) with(w *world.World, cmd *cobra.Command, do func(context.Context, *cobra.Command, *node.Node) error) error {
	n, err := f.join(cmd.Context(), w, speakerOf(cmd))
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }() // nothing is left to report
	if err := do(cmd.Context(), cmd, n); err != nil {
		if exit.IsEnd(err) {
			return err
		}
		return exit.EndOf(exit.Usage, err)
	}
	return nil
}

// change changes the job of a name.
type change = func(ctx context.Context, name string) error

// steerCommand returns a command's function that changes each named job, and then prints the job's state.
func steerCommand(changeOf func(*node.Node) change) func(context.Context, *cobra.Command, *node.Node, []string) error {
	return func(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
		for _, name := range args {
			if err := changeOf(n)(ctx, name); err != nil {
				return err
			}
			s, err := n.Job(ctx, name)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), statusLine(s))
		}
		return nil
	}
}

// resume resumes a job, and raises its cap if the flags say so.
func (f *jobsFlags) resume(n *node.Node) change {
	return func(ctx context.Context, name string) error {
		if f.maxCost > 0 {
			if err := n.Raise(ctx, name, limiter.USD(float64(f.maxCost))); err != nil {
				return err
			}
		}
		return n.Resume(ctx, name)
	}
}

// list prints all jobs, and their progress as the store shows it. If its progress cannot be read,
// a job is listed with its record alone.
func (f *jobsFlags) list(ctx context.Context, cmd *cobra.Command, n *node.Node) error {
	all, err := n.Jobs(ctx)
	if err != nil {
		return err
	}
	jobs := make([]listedJob, 0, len(all)) // none is a list, too
	for i := range all {
		l := listedJob{Record: all[i]}
		if s, err := n.Job(ctx, l.Job); err == nil { // else it was deleted just now, or is of a newer program
			l.Record, l.Items, l.Chunks, l.Parts = s.Record, s.Items, s.Chunks, s.Parts
		}
		jobs = append(jobs, l)
	}
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(jobs)
	}
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tSTATE\tWEIGHT\tINPUT\tOUTPUT\tPROGRESS")
	for i := range jobs {
		l := &jobs[i]
		fmt.Fprintf(t, "%s\t%s\t%g\t%s\t%s\t%s\n", l.Job, stateOf(&l.Record), l.Weight, firstInput(&l.Record), l.Output, l.progress())
	}
	return t.Flush()
}

// A listedJob holds its record and its progress, by the store alone.
type listedJob struct {
	job.Record
	Items  int `json:"items"`
	Chunks int `json:"chunks"` // of this round
	Parts  int `json:"parts"`  // of them that are done
}

// progress returns the share of finished parts; - until the input has been read.
func (l *listedJob) progress() string {
	if l.Chunks == 0 {
		return "-"
	}
	const whole = 100
	return fmt.Sprintf("%d %% (%d of %d parts, %d items)", whole*l.Parts/l.Chunks, l.Parts, l.Chunks, l.Items)
}

// show prints the state of a job, and the reason for it if there is one.
func (f *jobsFlags) show(cmd *cobra.Command, s node.JobStatus) error {
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(s)
	}
	fmt.Fprintln(cmd.OutOrStdout(), statusLine(s))
	if s.Record.Why != "" {
		fmt.Fprintln(cmd.OutOrStdout(), s.Record.Why)
	}
	return nil
}

// status prints how a job stands. For a job under way it first listens to the workers and the
// keeper for standWait.
func (f *jobsFlags) status(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
	s, err := n.Job(ctx, args[0])
	if err != nil {
		return err
	}
	if !s.Record.GoesOn() {
		return f.show(cmd, s)
	}
	at, err := n.Stand(ctx, args[0], standWait)
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(at)
	}
	return printStanding(cmd.OutOrStdout(), at)
}

const watchLong = `Show a job until it ends, or until Ctrl-C, which ends only the watching.

A terminal shows the panel of headrace run, else a line now and then, as --progress says; both on standard error. The
end of the job is printed on standard output. With --json standard output has one line a second: parts from the store,
calls from the workers, and limits from the keeper.`

// watch shows a job until it ends, and then prints its end. It ends without an error when the user
// leaves; the job goes on. With --json the last line is the end.
func (f *jobsFlags) watch(ctx context.Context, cmd *cobra.Command, s *run.Settings, n *node.Node, name string) error {
	if err := s.Complete(); err != nil {
		return err
	}
	say, err := openDisplay(s)
	if err != nil {
		return err
	}
	drain, ctx, closed := s.Watch(ctx, func(event.Code, string) {})
	defer closed()
	looking, stop := untilDrained(ctx, drain)
	defer stop()
	show, period := say.show, watchEvery
	if f.asJSON {
		period = waitEvery
		show = func(st *node.Standing) { err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(st)) }
	}
	ended, watched := n.Watch(looking, name, period, show)
	say.close()
	switch {
	case err != nil || f.asJSON && watched == nil:
		return err
	case looking.Err() != nil:
		return nil // nobody wants to look any more
	case watched != nil:
		return watched
	}
	return f.show(cmd, ended)
}

// untilDrained returns a context that ends with ctx, or when drain is closed. stop waits for its goroutine.
func untilDrained(ctx context.Context, drain <-chan struct{}) (watching context.Context, stop func()) {
	watching, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // stop waits for it
		defer close(ended)
		select {
		case <-drain:
			cancel()
		case <-watching.Done():
		}
	}()
	return watching, func() { cancel(); <-ended }
}

// remove deletes jobs that have ended, and prints their names.
func (f *jobsFlags) remove(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
	for _, name := range args {
		if err := n.Remove(ctx, name); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "job %s is deleted\n", name)
	}
	return nil
}

// add adds inputs to an open job, in the format of its first input. After --close none may follow.
func (f *jobsFlags) add(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
	s, err := n.Job(ctx, args[0])
	if err != nil {
		return err
	}
	var inputs []job.Input
	for _, name := range args[1:] {
		all, err := node.InputsOf(ctx, name)
		if err != nil {
			return err
		}
		for _, in := range all {
			in.Format = s.Record.Inputs[0].Format
			inputs = append(inputs, in)
		}
	}
	return n.Add(ctx, args[0], inputs, f.close)
}

// fetch makes the files of a job on this machine, or in a store.
func (f *jobsFlags) fetch(ctx context.Context, cmd *cobra.Command, n *node.Node, args []string) error {
	s, err := n.Job(ctx, args[0])
	if err != nil {
		return err
	}
	output, failed := f.filesOf(&s.Record)
	got, err := n.Fetch(ctx, args[0], output, failed, f.partial)
	if errors.Is(err, parts.ErrUnfinished) && s.Record.Why != "" {
		err = fmt.Errorf("%w; the job is %s: %s", err, s.Record.State, s.Record.Why)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d results in %s, %d failed\n", got.Done, output, got.Failed)
	return nil
}

// filesOf returns where the results and the failed items of a job go: where the flags say, else where the submission
// said. With another output the submission's errors file is not used.
func (f *jobsFlags) filesOf(r *job.Record) (output, failed string) {
	output, failed = f.output, f.errors
	if output == "" {
		output, failed = r.Output, cmp.Or(failed, r.Errors)
	}
	return output, cmp.Or(failed, journal.ErrorsPath(output))
}
