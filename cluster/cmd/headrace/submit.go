package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	joinFlags
	limitName  string
	job        string
	deadline   time.Duration
	maxCost    usdFlag
	weight     float64
	chunkLines int
	open, wait bool
}

// newSubmitCommand makes headrace submit, whose process founds the cluster if nobody has before.
func newSubmitCommand(w *world.World) *cobra.Command {
	f := &submitFlags{joinFlags: joinFlags{founds: true}}
	s := run.NewSettings(w, settings.Vendor|settings.Keys|settings.Input|settings.Files|settings.Tries|settings.Until|settings.Fails|settings.Checks|settings.Faces|settings.Says|settings.Config)
	s.Flags.ManyLanes, s.Flags.InJob = true, true
	cmd := &cobra.Command{
		Use:   "submit INPUT… -o OUTPUT --cluster LINE [flags]",
		Short: "Give a job to a cluster",
		Long: `Give a job to a cluster, and print its name. The inputs are read where they lie, so they must be where
all workers see them: on a shared file system, or in a bucket (s3://bucket/prompts.jsonl, or s3://bucket/prompts/ for
all that it contains).

With --wait it ends when the job does, with the files and the exit code of headrace run.

The same command again buys nothing twice: the same inputs, settings and output are the same job. A job that runs goes on,
and one that has ended gives its files and its exit code once more. An input that has changed since makes another job, and
so does --fresh.`,
		Example: `  headrace submit prompts.jsonl -o results.jsonl --cluster 'nats://TOKEN@…' --wait
  headrace submit s3://bucket/a.jsonl s3://bucket/b.jsonl -o results.jsonl --weight 2 --limit-name org-main`,
		Args: someInputs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.submit(cmd.Context(), w, cmd, s, args) },
	}
	f.register(cmd.Flags(), "cluster")
	fs := cmd.Flags()
	fs.Float64Var(&f.weight, "weight", 1, "share of the limit compared with other jobs: 2 is twice as much as 1")
	fs.StringVar(&f.limitName, "limit-name", "", "limit that its calls are under, shared by all jobs that name it (default: one for each provider, address, model and account, which is recognised by a short hash of the key of the caller; two keys of one organisation are two accounts: name a limit for them)")
	fs.StringVar(&f.job, "job", "", "name by which headrace jobs knows the job, too; the same name with another input, output or setting is refused")
	fs.IntVar(&f.chunkLines, "chunk-lines", 0, "most lines that a worker claims at once, 1 or more (default 1000)")
	fs.BoolVar(&f.open, "open", false, "more inputs may come, by headrace jobs add")
	fs.BoolVar(&f.wait, "wait", false, "wait for its end, and make the files that headrace run makes")
	s.Register(cmd)
	fs.Var(&f.maxCost, "max-cost", "most that its calls may cost in all, in USD, more than 0: no call leaves that is not covered, and the job stops (default: no bound)")
	fs.AddFlag(s.Flags.All.Lookup("price"))
	fs.AddFlag(s.Flags.All.Lookup("prices"))
	return cmd
}

func someInputs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.End(exit.Usage, "no input: name a prompt file that all workers see: see %s --help", cmd.CommandPath())
	}
	return nil
}

// submit gives a job to the cluster, and prints its name. It then ends, unless --wait is given or
// the same job had ended before. Otherwise it waits for the end, makes the files, and ends as
// headrace run does.
func (f *submitFlags) submit(ctx context.Context, w *world.World, cmd *cobra.Command, s *run.Settings, inputs []string) error {
	if err := s.Complete(); err != nil {
		return err
	}
	if s.Flags.Fleet != nil && f.limitName != "" {
		return exit.End(exit.Usage, "--limit-name names the limit of one provider, and lanes have limits of their own: remove it, or set quota in the lanes")
	}
	if err := f.check(cmd.Flags().Changed("chunk-lines")); err != nil {
		return err
	}
	if f.wait { // the files are made here, after all has been bought
		if err := s.CheckFolders(); err != nil {
			return err
		}
	}
	f.deadline, s.Flags.Deadline = s.Flags.Deadline, 0 // the cluster keeps it
	say, err := openDisplay(s)
	if err != nil {
		return err
	}
	defer say.close()
	drain, ctx, closed := s.Watch(ctx, say.event)
	defer closed()
	n, err := f.join(ctx, w, say)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }() // nothing is left to report
	g, err := f.give(ctx, n, s, inputs)
	if err != nil {
		return err
	}
	r := g.Record
	fmt.Fprintln(cmd.OutOrStdout(), r.Job)
	g.sayMet(say)
	if !f.wait && (!g.met || r.GoesOn()) {
		return nil
	}
	return waitFor(ctx, drain, n, s, r, say)
}

// check rejects values that no job can have.
func (f *submitFlags) check(chunks bool) error {
	switch {
	case !(f.weight > 0) || math.IsInf(f.weight, 0):
		return exit.End(exit.Usage, "--weight %v: it must be a number more than 0", f.weight)
	case chunks && f.chunkLines < 1:
		return exit.End(exit.Usage, "--chunk-lines %d: it must be 1 or more", f.chunkLines)
	}
	return nil
}

// given is a job that was submitted, now or before.
type given struct {
	job.Record
	met    bool     // the job was there before
	others []string // settings in which it differs; they do not change what it buys
}

// sayMet reports that a job was submitted before, and which of its earlier settings it keeps.
func (g *given) sayMet(say notifier) {
	if !g.met {
		return
	}
	say.line(fmt.Sprintf("job %s was submitted before, with the same input, settings and output: it is %s", g.Job, stateOf(&g.Record)))
	if g.IsPaused() {
		say.line("to go on: headrace jobs resume " + g.Job)
	}
	if len(g.others) > 0 {
		say.line("it keeps what it was submitted with: " + strings.Join(g.others, "; "))
	}
}

// give makes a job from the flags and submits it. If the same job was submitted before, it returns that job.
func (f *submitFlags) give(ctx context.Context, n *node.Node, s *run.Settings, inputs []string) (g given, err error) {
	lines := s.Lines()
	asked, err := recordOf(ctx, s, lines, inputs)
	if err != nil {
		return g, err
	}
	if n := len(asked.Inputs); lines.Reader.Limit > 0 && n > 1 {
		return g, exit.End(exit.Usage, "--limit counts the items of one input, and there are %d: submit one", n)
	}
	asked.Limit, asked.Weight, asked.Open, asked.Cut.ChunkLines = f.limitName, f.weight, f.open, f.chunkLines
	asked.Bounds = f.bounds(s)
	if asked.Caps, err = f.maxCost.firstCap(s, lines); err != nil {
		return g, err
	}
	if asked.Submission, err = f.submission(s, &asked); err == nil && s.Flags.Fresh {
		err = startOver(ctx, n, s, &asked, f.job)
	}
	submit := func() (others []string) {
		g.Record, g.met, err = n.SubmitOnce(ctx, asked, &node.Caller{Lines: lines, Reader: lines.Reader}, lines.Reader.Limit, f.job)
		if err == nil && g.met {
			others = job.Differences(&g.Record, &asked)
		}
		return others
	}
	if err == nil {
		g.others = submit()
	}
	if err == nil && g.State == job.Refused && len(g.others) > 0 { // nothing was bought, and a price that was missing may be there now
		if err = n.StartOver(ctx, &asked, f.job); err == nil {
			g.others = submit()
		}
	}
	if err == nil && g.met {
		if f.job != "" && len(g.others) > 0 {
			err = fmt.Errorf("job %s was submitted with another input or setting: %s; give what it has, or another name", g.Job, strings.Join(g.others, "; "))
		}
	}
	if err == nil && g.met && s.Flags.RetryFailed && g.State == job.Done {
		g.State, err = job.Running, n.RetryFailed(ctx, g.Job)
	}
	if err != nil {
		err = exit.EndOf(exit.Usage, err)
	}
	return g, err
}

// submission returns the identity of the job, from the flags.
func (f *submitFlags) submission(s *run.Settings, r *job.Record) (*job.Submission, error) {
	output, err := node.HomeOf(r.Output)
	given := s.Given(settings.Vendor | settings.Input | settings.Tries | settings.Fails)
	if base := given["base-url"]; base != "" {
		given["base-url"] = withoutUser(base)
	}
	for flag, value := range map[string]string{
		"limit-name": f.limitName, "weight": fmt.Sprint(f.weight), "chunk-lines": fmt.Sprint(f.chunkLines), "open": fmt.Sprint(f.open),
	} {
		given[flag] = value
	}
	if f.deadline > 0 {
		given["deadline"] = f.deadline.String()
	}
	if f.maxCost > 0 {
		given["max-cost"] = f.maxCost.String()
	}
	if price := s.Given(settings.Costs)["price"]; price != "" {
		given["price"] = price
	}
	if retries := s.Given(settings.Checks)["schema-retries"]; retries != "" {
		given["schema-retries"] = retries
	}
	for flag, name := range map[string]string{"prices": run.JobPrices, "lanes": run.JobLanes, "schema": run.JobSchema} {
		if text := r.Asking.Settings[name]; text != "" {
			const shown = 4 // bytes of a hash tell a text that has changed
			sum := sha256.Sum256([]byte(text))
			given[flag] = fmt.Sprintf("#%x", sum[:shown])
		}
	}
	return &job.Submission{Output: output, Settings: given}, err
}

// bounds returns the bounds at which the job stops.
func (f *submitFlags) bounds(s *run.Settings) (b job.Bounds) {
	b.Failures, b.Share = s.Flags.MaxFailures.Items, s.Flags.MaxFailures.Share
	if f.deadline > 0 {
		b.Deadline = s.Clock.Now().Add(f.deadline)
	}
	return b
}

// startOver makes the same command another job, and puts the files of the earlier one aside, as headrace run does.
func startOver(ctx context.Context, n *node.Node, s *run.Settings, r *job.Record, name string) error {
	for _, path := range []string{s.Flags.Output, s.Flags.ErrorsPath()} {
		if strings.Contains(path, "://") {
			return fmt.Errorf("--fresh puts aside no object of a store, and %s is one: name another output", path)
		}
		l, err := journal.LockOutput(path)
		if err == nil {
			_, err = journal.StartOver(path)
			err = errors.Join(err, l.Unlock())
		}
		if err != nil {
			return err
		}
	}
	return n.StartOver(ctx, r, name)
}

// waitEvery is the interval between two looks at a job.
const waitEvery = time.Second

// waitFor waits for a job's end and makes its files. It ends as headrace run does.
func waitFor(ctx context.Context, drain <-chan struct{}, n *node.Node, s *run.Settings, r job.Record, say *jobDisplay) error {
	waiting, stop := untilDrained(ctx, drain)
	defer stop()
	status, err := say.watch(waiting, n, r.Job)
	if errors.Is(err, job.ErrMissing) {
		return exit.End(exit.Interrupted, "job %s was deleted: it is no longer in the store", r.Job)
	}
	if err != nil {
		return exit.End(exit.Interrupted, "interrupted; the job continues. To see it, run:\nheadrace jobs status %s", r.Job)
	}
	return conclude(context.WithoutCancel(ctx), n, s, status, r, say)
}

// conclude makes the files of a job that has ended, and ends as headrace run does.
func conclude(ctx context.Context, n *node.Node, s *run.Settings, status node.JobStatus, r job.Record, say notifier) error {
	if status.Record.State == job.Refused {
		why, complaints, _ := strings.Cut(strings.TrimPrefix(status.Record.Why, "promptfile: "), "\n")
		return s.Verdict.FaultyInput(why, strings.Split(complaints, "\n"))
	}
	var names []string
	for _, in := range r.Inputs {
		names = append(names, in.Name)
	}
	got, err := n.Fetch(ctx, r.Job, s.Flags.Output, s.Flags.ErrorsPath(), status.Record.State != job.Done, names...)
	switch {
	case err != nil:
		return exit.EndOf(exit.Output, err)
	case status.Record.State == job.Stopped && status.Record.Bound:
		return goOn(s, exit.Bound, "stopped: "+status.Record.Why, got.Done, r.Job, greaterCap(&status.Record))
	case status.Record.State == job.Stopped:
		return goOn(s, exit.Stopped, "stopped: "+status.Record.Why, got.Done, r.Job, "")
	case status.Record.State == job.Canceled:
		return goOn(s, exit.Interrupted, "the job was canceled", got.Done, r.Job, "")
	}
	say.line(fmt.Sprintf("%s in %s%s", words.Count(got.Done, "result"), s.Flags.Output, costOf(&got)))
	s.Verdict.NameFailed(got.First, got.Failed)
	return s.Verdict.Of(sumsOf(got))
}

// goOn ends a job that can continue, with another --max-cost if one is given. A trial continues by the same command,
// because its cluster ends with it.
func goOn(s *run.Settings, code int, why string, results int, name, maxCost string) error {
	const soFar = "%s\n%s in %s; answers of unfinished parts are kept in the store. Continue with:"
	saved := words.Count(results, "result")
	if s.Flags.Cluster == settings.ClusterTrial {
		if maxCost != "" {
			return s.Verdict.FailRaised(maxCost, code, soFar, why, saved, s.Flags.Output)
		}
		return s.Verdict.FailAgain(code, soFar, why, saved, s.Flags.Output)
	}
	if maxCost != "" {
		name += " --max-cost " + maxCost
	}
	return exit.End(code, soFar+"\nheadrace jobs resume %s", why, saved, s.Flags.Output, name)
}

// costOf returns the known cost of a job, and the calls that may be billed as well; "" if there is
// neither.
func costOf(f *parts.Fetched) (text string) {
	if f.Priced > 0 {
		text = ", for " + words.Cost(f.CostUSD, true, f.Unpriced)
	}
	if d := &f.Doubtful; d.Calls > 0 {
		text += "; " + words.Doubtful(int(d.Calls), d.InputTokens, d.OutputTokens)
	}
	return text
}

// sumsOf returns the sums that a run of one process would have had.
func sumsOf(f parts.Fetched) *promptfile.Sums {
	var sums promptfile.Sums
	sums.Succeeded, sums.Failed, sums.Skipped = f.Done, f.Failed, f.Skipped
	sums.CostUSD, sums.Priced, sums.Unpriced = f.CostUSD, f.Priced, f.Unpriced
	return &sums
}

// paused is the state of a job under way that a person has paused, for people.
const paused = "paused"

// stateOf returns the state of a job for people.
func stateOf(r *job.Record) string {
	if r.IsPaused() {
		return paused
	}
	return string(r.State)
}

func statusLine(st node.JobStatus) string {
	r := &st.Record
	if r.IsPaused() {
		return fmt.Sprintf("job %s: paused, with %d of %d parts done, %d items", r.Job, st.Parts, st.Chunks, st.Items)
	}
	switch r.State {
	case job.Indexing:
		return "job " + r.Job + ": its input is being read"
	case job.Running:
		return fmt.Sprintf("job %s: %d of %d parts done, %d items", r.Job, st.Parts, st.Chunks, st.Items)
	case job.Refused, job.Canceled, job.Stopped, job.Done:
	}
	return fmt.Sprintf("job %s: %s", r.Job, r.State)
}
