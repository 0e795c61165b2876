package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// runTrial executes headrace run --cluster: it runs bus, keeper and worker in this process. If an address is given, it
// submits a job to the cluster there instead.
func runTrial(ctx context.Context, s *run.Settings, input string) error {
	if input == "-" || s.Flags.Output == "-" {
		return exit.End(exit.Usage, "--cluster: other machines cannot read standard input, nor write standard output: name files")
	}
	if err := s.CheckFolders(); err != nil {
		return err
	}
	f := submitFlags{weight: 1, maxCost: usdFlag(s.Flags.MaxCost)}
	if s.Flags.Cluster != settings.ClusterTrial {
		f.deadline, s.Flags.Deadline = s.Flags.Deadline, 0 // the cluster keeps it
	}
	say, err := openDisplay(s)
	if err != nil {
		return err
	}
	defer say.close()
	drain, calls, closed := s.Watch(ctx, say.event)
	defer closed()
	if s.Flags.Cluster != settings.ClusterTrial {
		return f.submitAndWait(calls, drain, s, input, say)
	}
	home, err := node.Home(s.Flags.Output)
	if err != nil {
		return exit.EndOf(exit.Output, err)
	}
	hub, err := bus.StartHub(bus.HubConfig{Dir: filepath.Join(home, "bus"), Listen: "127.0.0.1:0", Say: say.error})
	if err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	defer hub.Shutdown()
	line := node.JoinLine(hub.JoinURL(), home)
	say.line("a cluster in this process; on this machine another terminal joins with: headrace worker --join '" + line + "'")
	n, err := node.Join(calls, node.Config{Line: line, Settles: true, Founds: true, Seed: s.Seed(), Clock: s.Clock, Say: say.line})
	if err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	return errors.Join(workAlone(calls, drain, n, s, input, f.maxCost, say), n.Close())
}

// workAlone works on a job until the job has ended, or a signal stops the process.
func workAlone(ctx context.Context, drain <-chan struct{}, n *node.Node, s *run.Settings, input string, most usdFlag, say *jobDisplay) error {
	// A missing key shows before anything is done.
	calls, err := s.Connect()
	if err != nil {
		return err
	}
	calls.Close()
	r, err := trialJob(ctx, n, s, input, most, say)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	worked := make(chan error, 1)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // it ends when over is closed, or before; it is waited for below
		worked <- n.Work(ctx, node.Worker{Open: opener(s), Keeper: keeping.PrefersKeep, Concurrency: s.Flags.Concurrency, Options: s.Options(), Drain: closedByEither(ctx, drain, over)})
		stop()
	}()
	status, err := say.watch(waiting, n, r.Job)
	close(over)
	err = errors.Join(err, <-worked)
	if ended := status.Record.State; ended != "" && !status.Record.GoesOn() {
		return conclude(context.WithoutCancel(ctx), n, s, status, r, say)
	}
	return cutShort(context.WithoutCancel(ctx), n, s, r, err)
}

// cutShort ends a trial whose job has not ended: it writes the finished parts to the output.
func cutShort(ctx context.Context, n *node.Node, s *run.Settings, r job.Record, why error) error {
	got, err := n.Fetch(ctx, r.Job, s.Flags.Output, s.Flags.ErrorsPath(), true)
	if err != nil {
		return exit.EndOf(exit.Output, err)
	}
	code, text := exit.Interrupted, "interrupted"
	if errors.Is(why, batch.ErrStopped) {
		code, text = exit.Stopped, why.Error()
	}
	return s.Verdict.FailAgain(code, "%s\n%s in %s; answers of unfinished parts are kept in the store. Continue with:", text, words.Count(got.Done, "result"), s.Flags.Output)
}

// trialJob returns the job that an earlier trial with this output began, if it asks the same, or else a new one.
// Its calls may cost most.
func trialJob(ctx context.Context, n *node.Node, s *run.Settings, input string, most usdFlag, say notifier) (job.Record, error) {
	lines := s.Lines()
	r, err := recordOf(ctx, s, lines, []string{input})
	if err != nil {
		return r, err
	}
	r.Weight = 1
	if r.Caps, err = most.firstCap(s, lines); err != nil {
		return r, err
	}
	if !s.Flags.Fresh {
		if old, found, err := continueEarlier(ctx, n, s, &r, say); err != nil || found {
			return old, err
		}
	}
	if r, err = n.Submit(ctx, r, &node.Caller{Lines: lines, Reader: lines.Reader}, lines.Reader.Limit); err != nil {
		return r, exit.EndOf(exit.Usage, err)
	}
	return r, nil
}

// continueEarlier finds the latest job that asks the same, and continues it.
func continueEarlier(ctx context.Context, n *node.Node, s *run.Settings, r *job.Record, say notifier) (old job.Record, found bool, err error) {
	all, err := n.Jobs(ctx)
	if err != nil {
		return old, false, exit.EndOf(exit.Output, err)
	}
	for _, o := range all {
		if o.State != job.Refused && sameInputs(&o, r) && reflect.DeepEqual(o.Reading, r.Reading) {
			old, found = o, true
		}
	}
	if !found {
		return old, false, nil
	}
	if !reflect.DeepEqual(old.Asking, r.Asking) {
		if err := n.Ask(ctx, old.Job, r.Asking); err != nil {
			return old, true, err
		}
	}
	if err := changeCap(ctx, n, &old, r.Caps, say); err != nil {
		return old, true, exit.EndOf(exit.Usage, err)
	}
	switch {
	case old.State == job.Canceled || old.State == job.Stopped || old.IsPaused():
		err = n.Resume(ctx, old.Job)
	case old.State == job.Done:
		err = n.Resume(ctx, old.Job) // parts that are lost come first: nobody else can resume a trial's job
		if whole := errors.Is(err, node.ErrState); whole && s.Flags.RetryFailed {
			err = n.RetryFailed(ctx, old.Job)
		} else if whole {
			err = nil
		}
	}
	return old, true, err
}

// changeCap gives a job the cap that it has now. Without the flag it keeps the one that it has, and says so: nobody who
// forgets the flag pays without a bound.
func changeCap(ctx context.Context, n *node.Node, old *job.Record, caps []limiter.Money, say notifier) error {
	var now limiter.Money
	had := old.Cap()
	if len(caps) > 0 {
		now = caps[0]
	} else if had > 0 {
		now = had
		say.line(fmt.Sprintf("the job of this output has --max-cost %g, which holds: a greater --max-cost raises it", had.USD()))
	}
	switch {
	case now == had:
		return nil
	case had == 0:
		return errors.New("--max-cost: the job of this output began without it, so its calls are not counted: remove the flag, or start over with --fresh")
	}
	return n.Raise(ctx, old.Job, now)
}

// sameInputs reports whether two jobs have the same files, as they were submitted.
func sameInputs(a, b *job.Record) bool {
	given := func(in job.Input) job.Object {
		if in.Given != nil {
			return *in.Given
		}
		return in.Objects[0]
	}
	return a.Asking.Settings["limit"] == b.Asking.Settings["limit"] && slices.EqualFunc(a.Inputs, b.Inputs, func(x, y job.Input) bool {
		return x.Name == y.Name && x.Format == y.Format && given(x) == given(y)
	})
}

// submitAndWait runs the input in the cluster at an address.
func (f *submitFlags) submitAndWait(ctx context.Context, drain <-chan struct{}, s *run.Settings, input string, say *jobDisplay) error {
	say.line("this runs in the cluster at " + bus.HostsOf(s.Flags.Cluster))
	n, err := node.Join(ctx, node.Config{Line: s.Flags.Cluster, Founds: true, Seed: s.Seed(), Clock: s.Clock, Say: say.line})
	if err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	g, err := f.give(ctx, n, s, []string{input})
	if err == nil {
		g.sayMet(say)
		err = waitFor(ctx, drain, n, s, g.Record, say)
	}
	return errors.Join(err, n.Close())
}

// closedByEither returns a channel that closes when one of the two channels does, or when ctx ends.
func closedByEither(ctx context.Context, one, other <-chan struct{}) <-chan struct{} {
	both := make(chan struct{})
	go func() { // it ends with the first of the three
		select {
		case <-one:
		case <-other:
		case <-ctx.Done():
		}
		close(both)
	}()
	return both
}
