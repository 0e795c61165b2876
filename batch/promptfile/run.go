package promptfile

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// Sums are what a run comes to.
type Sums struct {
	batch.Summary
	EarlierDone    int            // items of the input that have a result of an earlier run
	EarlierFailed  int            // items and skipped lines that failed for good in one
	Skipped        int            // bad lines that went into the errors file
	Untranslatable int            // lines that went there as they cannot be said in the provider's words
	Renamed        int            // items that were given another id, as theirs was taken; see Watch
	CostUSD        float64        // of items whose cost is known, those not run among them
	Priced         int            // items whose cost is known
	Unpriced       int            // items whose cost is not, and that were answered or used tokens
	Truncated      int            // answers that ended at their length limit
	Kinds          map[string]int // failed items by code
	Unsaved        int            // ended items whose line could not be kept
	Arranged       bool           // the output did not stand in the order of the input, and does
	Unordered      bool           // it may not, as the run has ended before its end: the next sees to it
	Left           bool           // a stream was left before its end: it may hold more

	Stopped  error // why some items were not run, if the provider would not
	Full     error // that the disk was full, which has drained the run; there may have been room again, see FilesErr
	InputErr error // why the input ended early
	Changed  error // ErrChanged, of an input that is not what was checked: items of it may not have been asked
	FilesErr error // why not all is kept, or the files are not what was written
	RunErr   error // how batch.Stream has ended
}

// Err is all that kept the run from its end, the gravest first; nil if each item has
// ended. That items failed is no error.
func (s *Sums) Err() error { return errors.Join(s.FilesErr, s.InputErr, s.RunErr, s.Changed) }

// Run makes the calls: each item that no earlier run has ended is asked by call, within
// the options, and its line saved. Before that it checks the input, unless Plan did, and
// opens the files, unless Begin did; bad lines are then the error, a *BadLines, and
// nothing was called. It is called once.
//
// If results cannot be kept the run ends: softly while the disk is only full, since there
// may be room again for what is in flight (Sums.Full tells that it was); else at once. Items
// that were not run are left to the next run, which any of the errors allows. Options for
// concurrency, drain, control, gate and summary are the job's own.
func (j *Job) Run(ctx context.Context, call batch.Func[*Item, provider.Reply], opts ...batch.Option) (Sums, error) {
	if err := j.ready(); err != nil {
		return Sums{RunErr: err}, err
	}
	if isClosed(j.cfg.Drain) { // what is drained from the start could still let a call leave
		return Sums{RunErr: ErrHalted}, ErrHalted
	}
	r := j.start(ctx)
	var latest Result // one for all: Watch.Ended keeps nothing of it
	for res, err := range batch.Stream(r.ctx, r.in.items(), r.leaving(call), r.options(opts)...) {
		if err != nil {
			r.sums.RunErr = err
			break
		}
		latest = res
		r.take(&latest)
	}
	r.end()
	return r.sums, r.sums.Err()
}

// ready does what comes before the first call, as far as it was not done.
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

// run is what Run holds.
type run struct {
	*Job
	ctx      context.Context
	abandon  context.CancelCauseFunc
	in       *intake
	out      *sink
	sums     Sums
	released bool // a stream is not waited for any more

	full  chan error    // one place: the disk is full
	why   error         // the full disk, if it was that which closed drain; to be read when gone is closed
	drain chan struct{} // closed by Config.Drain, or by a full disk
	over  chan struct{}
	gone  chan struct{} // closed when who closes drain has gone
}

func (j *Job) start(ctx context.Context) *run {
	r := &run{
		Job: j, full: make(chan error, 1), drain: make(chan struct{}),
		over: make(chan struct{}), gone: make(chan struct{}),
	}
	r.ctx, r.abandon = context.WithCancelCause(ctx)
	r.out = j.newSink(r.fault)
	r.in = &intake{Job: j, ctx: r.ctx, drain: r.drain, halted: make(chan struct{}), putBad: r.out.put}
	if j.cfg.InputOrder && j.past.results != nil && j.past.results.Lines > 0 {
		r.in.order = new(journal.Order) // what this run adds will stand behind what is there
	}
	go r.brake()
	return r
}

// brake drains the run for the first reason that comes. The caller may drain it because of a
// full disk before this goroutine looks. The reason is still the disk.
func (r *run) brake() {
	defer close(r.gone)
	select {
	case <-r.cfg.Drain:
		select {
		case r.why = <-r.full:
		default:
		}
	case r.why = <-r.full:
	case <-r.over:
		return
	}
	close(r.drain)
}

// fault stops the run because a result cannot be kept. While there may be room
// again, what is in flight is worth waiting for; else it is abandoned.
func (r *run) fault(err error) {
	full := DiskFull(err)
	if full {
		select {
		case r.full <- err: // before the caller hears of it and may drain the run
		default: // of the other file: it is stopping already
		}
	}
	if r.cfg.Watch.Fault != nil {
		r.cfg.Watch.Fault(err)
	}
	if !full {
		r.abandon(err)
	}
}

func (r *run) options(opts []batch.Option) []batch.Option {
	if !shares(opts) {
		opts = append(r.maker.Options(), opts...) // the caller's come later, and count
	}
	if r.cfg.FilteredFails {
		opts = append(opts, batch.WithFilteredFailing())
	}
	return append(opts[:len(opts):len(opts)],
		batch.WithConcurrency(r.cfg.Concurrency),
		batch.WithDrain(r.drain),
		batch.WithGate(r.out.enter),
		batch.WithControl(r.cfg.Control),
		batch.WithSummary(&r.sums.Summary),
	)
}

// shares reports whether the lanes are another's, who says how they charge.
func shares(opts []batch.Option) bool {
	return slices.ContainsFunc(opts, func(o batch.Option) bool { return strings.HasPrefix(o.String(), "WithShared(") })
}

// leaving makes calls that give their place back if they bring no answer; the others do
// when it is written.
func (r *run) leaving(call batch.Func[*Item, provider.Reply]) batch.Func[*Item, provider.Reply] {
	return func(ctx context.Context, it *Item) (provider.Reply, error) {
		answered := false
		defer func() {
			if !answered { // nor if it panics
				r.out.leave(1)
			}
		}()
		reply, err := call(ctx, it)
		answered = err == nil && !(r.cfg.FilteredFails && provider.IsFiltered(reply.Finish))
		return reply, err
	}
}

// take deals with one result: into the files, or not run and into none. An answer is then
// in the saver's hands, or waits for its turn, as a copy whose bytes are bounded there.
func (r *run) take(res *Result) {
	if done := res.Value.Done; done != nil {
		defer done()
	}
	l, ended := r.maker.Line(res, &r.sums)
	if !ended {
		r.notRun(res.Err)
		r.out.end(res.Index, nil)
		return
	}
	if r.cfg.Watch.Ended != nil {
		r.cfg.Watch.Ended(res)
	}
	r.out.end(res.Index, &l)
}

// notRun notes why an item was not run. Once no lane is left, nothing that a
// stream may still bring can be run: it is not waited for.
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

func (r *run) noLaneLeft() bool {
	s, err := r.cfg.Control.Status(r.ctx, math.MaxInt)
	if err != nil {
		return true // the run is over
	}
	for _, l := range s.Lanes {
		if l.Phase != machine.Stopped {
			return false
		}
	}
	return true
}

// arrange brings the output into the order of the input, unless the run is to end now.
func (r *run) arrange() {
	moved, err := journal.Arrange(r.cfg.Output, r.in.order, r.goOn)
	if errors.Is(err, ErrHalted) {
		return
	}
	r.sums.Arranged, r.sums.Unordered, r.sums.FilesErr = moved, err != nil, err
}

// goOn is ErrHalted if the run is to end.
func (r *run) goOn() error {
	if isClosed(r.cfg.Drain) || r.ctx.Err() != nil {
		return ErrHalted
	}
	return nil
}

// end waits until all that was saved is safe, and completes the sums.
func (r *run) end() {
	s := &r.sums
	if s.FilesErr = r.out.close(); s.FilesErr == nil {
		s.FilesErr = r.cfg.dropSuperseded(r.past, r.in.whole)
	}
	if s.Unordered = r.in.order != nil; s.Unordered && s.FilesErr == nil && r.in.whole {
		r.arrange()
	}
	s.EarlierDone, s.EarlierFailed, s.Skipped, s.Renamed = r.in.done, r.in.failed, r.in.skipped, r.in.renamed
	s.Untranslatable = r.in.foreign
	s.Unsaved, s.InputErr, s.Left = r.out.unsaved, r.in.err, r.in.left
	s.Changed = r.changed(r.in)
	close(r.over)
	<-r.gone
	s.Full = r.why
	r.abandon(nil)
}
