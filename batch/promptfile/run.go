package promptfile

import (
	"context"
	"errors"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// Sums holds the results of a run.
type Sums struct {
	batch.Summary
	EarlierDone    int            // items with a result of an earlier run
	EarlierFailed  int            // items and skipped lines that failed for good in an earlier run
	EarlierUnknown int            // items of earlier runs whose cost is not known, if there is a MaxCost: it counts none of them
	Skipped        int            // bad lines that went into the errors file
	Untranslatable int            // lines that went there because they cannot be translated for the provider
	Renamed        int            // items with a new id, as theirs was taken; see Watch
	CostUSD        float64        // of items whose cost is known, including those not run
	FailedUSD      float64        // part of CostUSD: the items that failed
	Priced         int            // items whose cost is known
	Unpriced       int            // items whose cost is unknown, and that were answered or used tokens
	Truncated      int            // answers that ended at their length limit
	Kinds          map[string]int // failed items by code
	Unsaved        int            // ended items whose line could not be kept
	Arranged       bool           // the output was not in the order of the input, and is now
	Unordered      bool           // the output may be out of order, as the run stopped early: the next run sees to it
	Left           bool           // the run left a stream before its end: it may hold more

	OverBudget    *batch.BudgetError // why some items were not run, if MaxCost does not cover them
	UnpricedModel string             // the model without a price, if that is why

	Stopped  error // why some items were not run, if the provider refused
	Full     error // the disk was full, which has drained the run; there may have been room again, see FilesErr
	InputErr error // why the input ended early
	Changed  error // ErrChanged, if the input is not the checked one: some of its items may not have been asked
	FilesErr error // why not everything is saved, or why the files are not as written
	RunErr   error // the error of batch.Stream
}

// Err joins all that kept the run from its end, the gravest first; nil if each item has
// ended. Failed items are not an error.
func (s *Sums) Err() error { return errors.Join(s.FilesErr, s.InputErr, s.RunErr, s.Changed) }

// Run makes the calls: it asks call for each item that no earlier run has ended, within the
// options, and saves its line. Before that it checks the input, unless Plan did, and opens
// the files, unless Begin did. If there are bad lines, the error is a *BadLines, and
// nothing was called. Run may be called once.
//
// If results cannot be saved the run ends. While the disk is only full it ends softly, as
// there may be room again for the calls in flight; Sums.Full then says so. Otherwise it
// ends at once. Items that were not run are left to the next run, whatever the error. The
// job sets the options for concurrency, drain, control, gate and summary itself.
func (j *Job) Run(ctx context.Context, call batch.Func[*Item, provider.Reply], opts ...batch.Option) (Sums, error) {
	if err := j.ready(); err != nil {
		return Sums{RunErr: err}, err
	}
	if isClosed(j.cfg.Drain) { // a run drained from the start could still let a call leave
		return Sums{RunErr: ErrHalted}, ErrHalted
	}
	r := j.start(ctx)
	var latest Result // one for all: Watch.Ended keeps nothing of it
	for res, err := range batch.Stream(r.ctx, r.in.items(), r.returningPlaces(call), r.options(opts)...) {
		if err != nil {
			r.sums.RunErr = err
			break
		}
		latest = res
		r.takeResult(&latest)
	}
	r.end()
	return r.sums, r.sums.Err()
}

// ready does what comes before the first call, unless it was done.
func (j *Job) ready() error {
	if !j.planned {
		if _, err := j.Plan(); err != nil {
			return err
		}
	}
	if fatal := j.plan.Fatal(j.cfg.SkipBad, j.cfg.SkipUntranslatable); fatal != nil {
		return fatal
	}
	if j.files != nil {
		return nil
	}
	_, err := j.Begin()
	return err
}

// run holds the state of Run.
type run struct {
	*Job
	ctx      context.Context
	abandon  context.CancelCauseFunc
	in       *intake
	out      *sink
	sums     Sums
	released bool // the run no longer waits for a stream

	full         chan error    // one place: the disk is full
	fullErr      error         // the full disk, if that closed drain; to be read when drainerEnded is closed
	drain        chan struct{} // closed by Config.Drain, or by a full disk
	runEnded     chan struct{}
	drainerEnded chan struct{} // closed when the goroutine that closes drain has ended
}

// start makes the state of a run, and starts drainOnReason, which ends when the run is over. It calls nothing yet.
func (j *Job) start(ctx context.Context) *run {
	r := &run{
		Job: j, full: make(chan error, 1), drain: make(chan struct{}),
		runEnded: make(chan struct{}), drainerEnded: make(chan struct{}),
	}
	r.ctx, r.abandon = context.WithCancelCause(ctx)
	r.out = j.newSink(r.fault)
	r.in = &intake{Job: j, ctx: r.ctx, drain: r.drain, halted: make(chan struct{}), putBad: r.out.put}
	if j.cfg.InputOrder && j.past.results != nil && j.past.results.Lines > 0 {
		r.in.order = new(journal.Order) // this run's lines will stand behind those already there
	}
	go r.drainOnReason()
	return r
}

// drainOnReason drains the run for the first reason that comes: Config.Drain, or a full disk. On a full disk the
// caller may drain the run before this goroutine looks. The reason is still the disk.
func (r *run) drainOnReason() {
	defer close(r.drainerEnded)
	select {
	case <-r.cfg.Drain:
		select {
		case r.fullErr = <-r.full:
		default:
		}
	case r.fullErr = <-r.full:
	case <-r.runEnded:
		return
	}
	close(r.drain)
}

// fault stops the run because a result cannot be saved. While there may be room again, the
// calls in flight are worth waiting for; otherwise they are abandoned.
func (r *run) fault(err error) {
	full := DiskFull(err)
	if full {
		select {
		case r.full <- err: // before the caller hears of it and may drain the run
		default: // the other file's: the run is stopping already
		}
	}
	if r.cfg.Watch.Fault != nil {
		r.cfg.Watch.Fault(err)
	}
	if !full {
		r.abandon(err)
	}
}

// options returns the options of the whole run. The job's own stand last, so that they win over
// the caller's. Those of the maker stand first, so that the caller's win over them.
func (r *run) options(opts []batch.Option) []batch.Option {
	if !batch.SharesLanes(opts...) { // else the Shared says how its lanes charge
		opts = append(r.maker.Options(), opts...)
	}
	opts = slices.Clip(opts) // another job may use the caller's slice
	if budget, has := r.budget(); has {
		opts = append(opts, budget)
	}
	if r.cfg.FilteredFails {
		opts = append(opts, batch.WithFilteredFailing())
	}
	if r.cfg.Check != nil {
		opts = append(opts, batch.WithMisfitRetries(r.cfg.CheckRetries, r.checkRetries()))
	}
	return append(opts,
		batch.WithConcurrency(r.cfg.Concurrency),
		batch.WithMostConcurrency(r.cfg.MostConcurrency),
		batch.WithDrain(r.drain),
		batch.WithGate(r.out.acquirePlace),
		batch.WithControl(r.cfg.Control),
		batch.WithSummary(&r.sums.Summary),
	)
}

// returningPlaces wraps call so that a call without an answer, or with one that fails its item, gives its place
// back at once. Other places are given back when the answer is written.
func (r *run) returningPlaces(call batch.Func[*Item, provider.Reply]) batch.Func[*Item, provider.Reply] {
	return func(ctx context.Context, it *Item) (provider.Reply, error) {
		answered := false
		defer func() {
			if !answered { // nor if it panics
				r.out.releasePlaces(1)
			}
		}()
		reply, err := call(ctx, it)
		if err == nil {
			if fault := r.cfg.Misfit(it, &reply); fault != nil {
				err = fault
			}
		}
		answered = err == nil && !(r.cfg.FilteredFails && provider.IsFiltered(reply.Finish))
		return reply, err
	}
}

// takeResult handles one result: it goes into the files, or was not run and goes into none. An answer is then in
// the saver's hands, or waits as a copy for its turn. turns bounds the bytes of such copies in memory.
func (r *run) takeResult(res *Result) {
	if done := res.Value.Done; done != nil {
		defer done()
	}
	l, ended := r.maker.Line(res, &r.sums)
	if !ended {
		r.notRun(res.Err)
		r.noteBudget(res)
		r.out.takeLine(res.Index, nil)
		return
	}
	if r.cfg.Watch.Ended != nil {
		r.cfg.Watch.Ended(res)
	}
	r.out.takeLine(res.Index, &l)
}

// notRun records why an item was not run. Once no lane is left, no item that a stream may
// still bring can be run: the run no longer waits for it.
func (r *run) notRun(err error) {
	if !errors.Is(err, batch.ErrStopped) {
		return
	}
	r.sums.Stopped = err
	if r.cfg.Input.Stream && !r.released && r.noLaneLeft() {
		r.released = true
		close(r.in.halted)
	}
}

// noLaneLeft reports whether all lanes of the run have stopped, or it is over. Other lanes of a batch.Shared do not count.
func (r *run) noLaneLeft() bool {
	s, err := r.cfg.Control.Status(r.ctx, 0)
	return err != nil || s.Run.Bound == machine.BoundStopped
}

// end waits until all saved lines are safe, and completes the sums. Where this run's lines stand behind earlier
// ones, it brings the output into the order of the input.
func (r *run) end() {
	sums := &r.sums
	if sums.FilesErr = r.out.close(); sums.FilesErr == nil {
		sums.FilesErr = r.cfg.dropSuperseded(r.past, r.in.whole)
	}
	if sums.Unordered = r.in.order != nil; sums.Unordered && sums.FilesErr == nil && r.in.whole {
		moved, err := journal.Arrange(r.cfg.Output, r.in.order, func() error {
			if isClosed(r.cfg.Drain) || r.ctx.Err() != nil {
				return ErrHalted // the run must end now
			}
			return nil
		})
		if !errors.Is(err, ErrHalted) {
			sums.Arranged, sums.Unordered, sums.FilesErr = moved, err != nil, err
		}
	}
	sums.EarlierUnknown = r.earlierSpending.unpriced
	sums.EarlierDone, sums.EarlierFailed, sums.Skipped, sums.Renamed = r.in.done, r.in.failed, r.in.skipped, r.in.renamed
	sums.Untranslatable = r.in.untranslatable
	sums.Unsaved, sums.InputErr, sums.Left = r.out.unsaved, r.in.err, r.in.left
	sums.Changed = r.checkUnchanged(r.in)
	close(r.runEnded)
	<-r.drainerEnded
	sums.Full = r.fullErr
	r.abandon(nil)
}
