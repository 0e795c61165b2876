package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/purse"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Jobs lists the jobs of the cluster, in the order in which they were submitted.
func (n *Node) Jobs(ctx context.Context) (all []job.Record, err error) {
	for name, err := range job.List(ctx, n.home) {
		if err != nil {
			return all, err
		}
		r, err := job.Load(ctx, n.home, name)
		if err != nil && !errors.Is(err, job.ErrNewer) {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// JobStatus is a job's state, by the store alone.
type JobStatus struct {
	Record job.Record `json:"record"`
	Lines  int        `json:"lines"` // of the input; 0 until it is indexed
	Items  int        `json:"items"`
	Chunks int        `json:"chunks"` // of this round
	Parts  int        `json:"parts"`  // of the chunks, those that are done
}

// Job returns the state of one job.
func (n *Node) Job(ctx context.Context, name string) (s JobStatus, err error) {
	if s.Record, err = job.Load(ctx, n.home, name); err != nil || s.Record.Plan == "" {
		return s, err
	}
	plan, err := index.LoadPlan(ctx, n.home, &s.Record)
	if err != nil {
		return s, err
	}
	l, err := n.ledger(ctx, &s.Record, s.Record.Round, plan.Chunks)
	if err == nil {
		err = l.Refresh(ctx)
	}
	if err != nil {
		return s, err
	}
	s.Lines, s.Items, s.Chunks, s.Parts = plan.Lines, plan.Items, l.Len(), l.Done()
	return s, nil
}

// ErrState says that a job's state does not permit the request.
var ErrState = errors.New("the job is not in a state for that")

// Cancel ends a job. Calls in flight are saved, and saved results stay.
func (n *Node) Cancel(ctx context.Context, name string) error {
	return n.change(ctx, name, func(r *job.Record) error {
		if r.State == job.Done || r.State == job.Refused {
			return fmt.Errorf("%w: it is %s", ErrState, r.State)
		}
		r.State, r.Why, r.Paused = job.Canceled, "by hand", false
		return nil
	})
}

// Pause keeps the calls of a job from leaving until Resume. Calls in flight are saved. The job still counts as under way.
func (n *Node) Pause(ctx context.Context, name string) error {
	return n.change(ctx, name, func(r *job.Record) error {
		if !r.GoesOn() {
			return fmt.Errorf("%w: it is %s", ErrState, r.State)
		}
		r.Paused = true
		return nil
	})
}

// Remove deletes a job that has ended, and its results in the store.
func (n *Node) Remove(ctx context.Context, name string) error {
	if err := n.checkMayChange(); err != nil {
		return err
	}
	r, err := job.Load(ctx, n.home, name)
	switch {
	case err != nil:
		return err
	case r.State == job.Running || r.State == job.Indexing:
		return fmt.Errorf("%w: it is %s: cancel it first", ErrState, r.State)
	}
	if r.Submission != nil && r.Submission.Key != "" { // first, so that the same command is another job from now on
		if err := job.Disclaim(ctx, n.home, r.Submission.Key, name); err != nil {
			return err
		}
	}
	if err := job.Remove(ctx, n.home, name); err != nil {
		return err
	}
	n.announceUntilSent(ctx, name)
	return nil
}

// Resume continues a job that was paused, canceled or stopped, or one that is done and has lost parts.
func (n *Node) Resume(ctx context.Context, name string) error {
	if err := n.checkMayChange(); err != nil { // the marks of a finished round are deleted before the record changes
		return err
	}
	before, err := job.Load(ctx, n.home, name)
	if err != nil {
		return err
	}
	round, err := n.reopen(ctx, &before)
	if err != nil {
		return err
	}
	return n.change(ctx, name, func(r *job.Record) error {
		if r.IsPaused() {
			r.Paused = false
			return nil
		}
		if r.State != job.Canceled && r.State != job.Stopped && (r.State != job.Done || r.Version != before.Version) {
			return fmt.Errorf("%w: it is %s", ErrState, r.State)
		}
		r.Bounds, r.Bound = job.Bounds{}, false // a bound that was reached would stop it again
		whole, err := index.Whole(ctx, n.home, r)
		if r.State, r.Why, r.Round, r.Paused = job.Running, "", round, false; !whole {
			r.State = job.Indexing
		}
		return err
	})
}

// Raise lets the calls of a job cost more than before, in all. What it has drawn of its earlier cap counts as spent.
func (n *Node) Raise(ctx context.Context, name string, most limiter.Money) error {
	return n.change(ctx, name, func(r *job.Record) error {
		if err := checkMayCap(r); err != nil {
			return err
		}
		if most <= r.Cap() {
			return fmt.Errorf("%w: its --max-cost is $%g already: give more", ErrState, r.Cap().USD())
		}
		r.SetCap(most)
		return nil
	})
}

// checkMayCap returns an error that says why the cap of a job cannot change; nil: it can.
func checkMayCap(r *job.Record) error {
	switch {
	case r.State == job.Refused:
		return fmt.Errorf("%w: it is %s", ErrState, r.State)
	case len(r.Caps) == 0:
		return fmt.Errorf("%w: it was submitted without --max-cost", ErrState)
	}
	return nil
}

// SetMaxCost sets what the calls of a job may cost in all, and returns what that was before. What workers have drawn counts
// as spent. If that is as much already, a job under way stops.
func (n *Node) SetMaxCost(ctx context.Context, name string, most limiter.Money) (before limiter.Money, err error) {
	var now job.Record
	err = n.change(ctx, name, func(r *job.Record) error {
		if err := checkMayCap(r); err != nil {
			return err
		}
		before = r.Cap()
		r.SetCap(most)
		now = *r
		return nil
	})
	if err != nil || !now.GoesOn() || most >= before {
		return before, err
	}
	drawn, err := purse.Drawn(ctx, n.home, name, now.Caps) // after the change: no worker draws more
	if err == nil && drawn >= most {
		n.stopJob(ctx, name, fmt.Sprintf("its cap (--max-cost) is reached: it was set to $%g, and workers have drawn $%g", most.USD(), drawn.USD()), true)
	}
	return before, err
}

// ErrLost says that the store has lost a part of a job that is done.
var ErrLost = errors.New("a part of the finished job is no longer in the store")

// lostParts returns the first round of a finished job that lacks parts, and the chunks of these parts. lost is empty if
// no part is missing.
func (n *Node) lostParts(ctx context.Context, r *job.Record, chunks int) (round int, lost []int, err error) {
	for round = 0; round <= r.Round && len(lost) == 0 && err == nil; round++ {
		var l *parts.Ledger
		if l, err = n.ledger(ctx, r, round, chunks); err == nil {
			lost, err = l.Lost(ctx)
		}
	}
	return round - 1, lost, err
}

// checkWhole returns an error of kind ErrLost if a finished job has lost a part. The error names the first one.
func (n *Node) checkWhole(ctx context.Context, r *job.Record, chunks int) error {
	round, lost, err := n.lostParts(ctx, r, chunks)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%w: %s (%d in all): headrace jobs resume %s asks its items again", ErrLost, job.PartName(r.Job, lost[0], round), len(lost), r.Job)
	}
	return err
}

// reopen returns the round in which a job goes on: its own, or, if it is done, the one with lost parts.
func (n *Node) reopen(ctx context.Context, r *job.Record) (round int, err error) {
	if r.State != job.Done {
		return r.Round, nil
	}
	plan, err := index.LoadPlan(ctx, n.home, r)
	if err != nil {
		return 0, err
	}
	round, lost, err := n.lostParts(ctx, r, plan.Chunks)
	if err == nil && len(lost) == 0 {
		err = fmt.Errorf("%w: it is %s, and no part of it is lost", ErrState, r.State)
	}
	for later := round; later <= r.Round && err == nil; later++ {
		err = parts.Reopen(ctx, n.home, r.Job, later, lost)
	}
	return round, err
}

// Ask changes a job's provider, address and settings, such as when an item is given up. Workers that begin with the
// job from now on use the change; others go on as before.
func (n *Node) Ask(ctx context.Context, name string, asking job.Asking) error {
	return n.change(ctx, name, func(r *job.Record) error {
		r.Asking = asking
		return nil
	})
}

// RetryFailed begins another round, of the items that failed for good. The parts hold these, so all parts must be
// there.
func (n *Node) RetryFailed(ctx context.Context, name string) error {
	before, err := job.Load(ctx, n.home, name)
	if err != nil {
		return err
	}
	if before.State == job.Done {
		plan, err := index.LoadPlan(ctx, n.home, &before)
		if err == nil {
			err = n.checkWhole(ctx, &before, plan.Chunks)
		}
		if err != nil {
			return err
		}
	}
	return n.change(ctx, name, func(r *job.Record) error {
		if r.State != job.Done {
			return fmt.Errorf("%w: it is %s, and must be done", ErrState, r.State)
		}
		r.State, r.Round, r.Bounds, r.Paused = job.Running, r.Round+1, job.Bounds{}, false
		return nil
	})
}

// Add adds inputs to a job that was submitted open. closed says that no more inputs will come.
func (n *Node) Add(ctx context.Context, name string, inputs []job.Input, closed bool) error {
	if err := n.checkMayChange(); err != nil { // inputs are unpacked into the store
		return err
	}
	r, err := job.Load(ctx, n.home, name)
	if err != nil {
		return err
	}
	if r, err = n.withInputs(ctx, r, &Caller{}, inputs, 0); err != nil {
		return err
	}
	inputs = r.Inputs
	return n.change(ctx, name, func(r *job.Record) error {
		if !r.Open {
			return fmt.Errorf("%w: it was submitted whole", ErrState)
		}
		number := 1
		for _, in := range r.Inputs {
			number = max(number, in.Added+1)
		}
		for _, in := range inputs {
			in.Added = number
			r.Inputs = append(r.Inputs, in)
		}
		if len(inputs) > 0 {
			r.State = job.Indexing
		}
		r.Open = !closed
		return nil
	})
}

// change changes a job's record as edit says, and announces the change to all workers.
func (n *Node) change(ctx context.Context, name string, edit func(*job.Record) error) error {
	if err := n.checkMayChange(); err != nil {
		return err
	}
	_, err := job.Change(ctx, n.home, name, edit)
	if err == nil {
		n.announceUntilSent(ctx, name)
	}
	return err
}

// checkMayChange returns an error if the line to join by permits watching only.
func (n *Node) checkMayChange() error {
	if n.bus.Role() == bus.WatchRole {
		return watchOnly()
	}
	return nil
}

// tellTries bounds the attempts, a second apart, to announce a change on the bus: longer than a hub takes to start
// again.
const tellTries = 30

// announceUntilSent announces that a job has changed; the message gets through if the bus is back before long.
func (n *Node) announceUntilSent(ctx context.Context, name string) {
	for range tellTries {
		if n.bus.Say(bus.News, name, bus.Change{}) == nil || ctx.Err() != nil {
			return
		}
		n.pause(ctx)
	}
	n.sayf("job %s is changed, and the bus is away: the workers hear of it when it is back", name)
}

// Wait waits until a job has ended, in whatever way, and returns its state then. It passes each state that it reads to
// report.
func (n *Node) Wait(ctx context.Context, name string, every time.Duration, report func(JobStatus)) (JobStatus, error) {
	news, err := bus.Listen[bus.Change](n.bus, bus.News, name, newsKept)
	if err != nil {
		return JobStatus{}, err
	}
	defer news.Close()
	ticker := n.clock.NewTicker(every)
	defer ticker.Stop()
	for {
		s, err := n.Job(ctx, name)
		if err == nil {
			report(s)
			if s.Record.State != job.Indexing && s.Record.State != job.Running {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-ticker.Chan():
		case <-news.C:
		}
	}
}

// ResetLimit vouches for a limit: the limit flows again, with nothing held against it.
func (n *Node) ResetLimit(limit string) error {
	if n.bus.Role() != bus.AdminRole {
		return adminOnly()
	}
	return n.bus.Say(bus.News, bus.LimitNews, bus.Change{Reset: limit})
}

// SetLimit sets a limit and keeps it in the store. A keeper that misses the message reads it there.
func (n *Node) SetLimit(ctx context.Context, limit string, lane machine.LaneConfig) error {
	if n.bus.Role() != bus.AdminRole { // a keeper would read it in the store, which checks no role
		return adminOnly()
	}
	return keeping.SetLimit(ctx, n.bus, n.home, limit, lane)
}

// ChangeLimit sets a limit to the result of change. It starts from the settings that a person made before. Without any,
// it starts from those of a worker with calls under the limit. It listens to workers for wait to learn them, and for
// silentWait more while all are silent.
func (n *Node) ChangeLimit(ctx context.Context, limit string, wait time.Duration, change func(*machine.LaneConfig)) error {
	lane, set, err := keeping.SetByPeople(ctx, n.home, limit)
	if err == nil && !set {
		lane, err = n.limitOfWorkers(ctx, limit, wait)
	}
	if err != nil {
		return err
	}
	change(&lane)
	return n.SetLimit(ctx, limit, lane)
}

// silentWait is the further time for a report while all workers are silent: one on a machine that stalls reports seconds late.
// Without its report the limit would lose all that the person does not name.
const silentWait = 10 * time.Second

// limitOfWorkers returns a limit as a worker describes it. It returns the zero value if workers report within wait and
// none knows the limit, or if all are silent for silentWait after that.
func (n *Node) limitOfWorkers(ctx context.Context, limit string, wait time.Duration) (lane machine.LaneConfig, err error) {
	workers, err := bus.Listen[bus.WorkerStatus](n.bus, bus.Status, "", watchKept)
	if err != nil {
		return lane, err
	}
	defer workers.Close()
	heard, isLate := false, false
	for timeout := n.clock.After(wait); ; {
		select {
		case <-ctx.Done():
			return lane, ctx.Err()
		case <-timeout:
			if heard || isLate {
				return lane, nil
			}
			timeout, isLate = n.clock.After(silentWait), true
		case message, open := <-workers.C:
			if !open {
				return lane, bus.ErrAway
			}
			if lane, known := message.Body.Limits[limit]; known {
				return lane, nil
			}
			heard = true
		}
	}
}
