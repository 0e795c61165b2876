package observe

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A Recorder watches one run: make one with [New], give its Options to the run, and Snapshot at
// it at any time, from any goroutine, also when the run is over.
type Recorder struct {
	cfg            Config
	shards         [shards]shard
	names          names
	failures       failures
	fault          atomic.Pointer[error] // the first panic of a function of others
	observerFailed bool                  // the observer's: a function that it calls has panicked

	mu      sync.Mutex // for all that follows: the observer writes it, and Snapshot reads it
	began   time.Time  // zero: there was no event yet
	at      time.Time  // of the latest event
	lastEnd time.Time  // of the latest event before which an item ended
	state   State
	last    batch.Status
	run     *series
	lanes   [slots]*series // by slot; nil: nothing is known
	fresh   [slots]counts  // what was just collected
	items   curve          // that have ended, for as long as a sparkline is

	account    Ledger
	seenLedger batch.Ledger // what of the run's is in account
	atGate     float64      // share of the time of recent calls that they spent at the gate
	holder     *holder      // nil: there was no event yet
	bottleneck Bottleneck

	allowedNow      float64 // items a second; +Inf: not known
	allowance       float64 // items that were allowed, as long as that was known
	answeredAllowed int     // items that were answered in that time

	sampled  time.Duration // end of the latest sample, since the run began
	gauges   gauges        // since then
	reported Ledger        // what of account is in samples

	forecast forecaster
	ends     Forecast
	inAll    Estimate
}

// New returns a recorder of a run that has not begun.
func New(cfg Config) *Recorder {
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	cfg.Work = slices.Clone(cfg.Work)
	r := &Recorder{
		cfg: cfg, run: newSeries(""), items: curve{gap: longGap, room: longRoom},
		allowedNow: math.Inf(1),
	}
	for _, w := range cfg.Work { // these have names of their own before any other
		work := &r.lane(r.names.slot(w.Lane)).work
		work.Items, work.Bytes = work.Items+max(0, w.Items), work.Bytes+max(0, w.Bytes)
	}
	return r
}

// Options returns the options that make a run report to the recorder: [batch.WithCalls],
// [batch.WithEnds], [batch.WithObserver] and [batch.WithProgressEvery]. No other option may set
// these again.
func (r *Recorder) Options() []batch.Option {
	return []batch.Option{
		batch.WithCalls(r.takeCall), batch.WithEnds(func(e batch.End) { r.countEnd(&e) }),
		batch.WithObserver(r.event), batch.WithProgressEvery(r.cfg.Every),
	}
}

// takeCall counts a call, and passes it on.
func (r *Recorder) takeCall(c batch.Call) {
	r.countCall(&c)
	if r.cfg.OnCall != nil {
		defer r.caught("OnCall")
		r.cfg.OnCall(c)
	}
}

// event records an event of the run, and passes it on to the observers.
func (r *Recorder) event(e batch.Event) {
	var s *Sample
	switch {
	case e.Status != nil:
		s = r.noteStatus(e.Status)
	case e.Summary != nil:
		s = r.noteSummary(e.Summary)
	}
	r.callObservers(s, e)
	if err := r.fault.Load(); err != nil && e.Summary != nil {
		panic(*err)
	}
}

// callObservers calls OnSample and Observer. Once one of them has panicked, it calls neither again.
func (r *Recorder) callObservers(s *Sample, e batch.Event) {
	if r.observerFailed {
		return
	}
	r.observerFailed = true
	defer r.caught("OnSample or Observer")
	if s != nil && r.cfg.OnSample != nil {
		r.cfg.OnSample(*s)
	}
	if r.cfg.Observer != nil {
		r.cfg.Observer(e)
	}
	r.observerFailed = false
}

// noteStatus records the status of the run. It returns a sample if a second of the run has passed
// since the latest one, and else nil.
func (r *Recorder) noteStatus(s *batch.Status) *Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.collect()
	if r.holder == nil {
		r.begin(s.At.Add(-s.Run.Ledger.Sum()))
	}
	r.last, r.state = *s, Running
	r.last.Lanes = slices.Clone(s.Lanes)
	switch {
	case s.Run.Bound == limiter.BoundStopped:
		r.state = Stopped
	case s.Run.Bound == limiter.BoundDraining:
		r.state = Draining
	case s.Run.Paused:
		r.state = Paused
	}
	gap := r.advance(s.At, &fresh)
	gap -= r.chargeLedger(&s.Run.Ledger, &fresh)
	r.judge(&r.last)
	r.note(gap, &fresh)
	defer r.foresee()
	if r.elapsed()/time.Second > r.sampled/time.Second {
		return r.sample()
	}
	return nil
}

// noteSummary records the end of the run, and returns the last sample.
func (r *Recorder) noteSummary(s *batch.Summary) *Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = Over
	fresh := r.collect()
	fresh.failed += max(0, s.Failed-r.run.total.failed-fresh.failed) // those whose Pool or Cost panicked: they have no end event
	r.last.Run.Counters, r.last.Run.Money = s.Counters, s.Money
	if r.holder == nil {
		r.begin(s.At.Add(-s.Elapsed))
	}
	gap := r.advance(r.began.Add(s.Ran), &fresh)
	gap -= r.chargeLedger(&s.Held, &fresh)
	r.note(gap, &fresh)
	defer r.foresee()
	return r.sample()
}

// begin sets the run's beginning.
func (r *Recorder) begin(at time.Time) {
	r.began, r.at, r.holder = at, at, newHolder(at)
}

// elapsed returns the time since the run began.
func (r *Recorder) elapsed() time.Duration { return r.at.Sub(r.began) }

// collect empties the shards, and returns the counts of all lanes since the last time.
func (r *Recorder) collect() (sum counts) {
	for slot := range r.fresh {
		fresh := &r.fresh[slot]
		*fresh = counts{}
		var times Times
		for k := range r.shards {
			r.shards[k].empty(slot, fresh, &times)
		}
		if !fresh.empty() {
			sum.add(fresh)
			r.lane(slot).times.add(&times)
		}
	}
	return sum
}

// lane returns the series of a slot, and makes it at the first request.
func (r *Recorder) lane(slot int) *series {
	if r.lanes[slot] == nil {
		name := OtherLanes
		switch {
		case slot == noSlot:
			name = ""
		case slot < MaxLanes:
			name = r.names.nameOf(slot)
		}
		r.lanes[slot] = newSeries(name)
	}
	return r.lanes[slot]
}

// advance adds the collected counts to the run and its lanes, up to a moment. It returns the time
// since the moment before.
func (r *Recorder) advance(at time.Time, fresh *counts) (gap time.Duration) {
	before := r.elapsed()
	r.at = later(r.at, at)
	if fresh.ended() > 0 {
		r.lastEnd = r.at
	}
	elapsed := r.elapsed()
	r.run.addCounts(fresh, before, elapsed)
	r.items.addRise(before, elapsed, r.run.total.ended())
	for slot, s := range r.lanes {
		if s != nil {
			s.addCounts(&r.fresh[slot], before, elapsed)
		}
	}
	return elapsed - before
}

// chargeLedger adds the growth of the run's ledger to the recorder's. It returns how much of that
// time the computer slept.
func (r *Recorder) chargeLedger(now *batch.Ledger, fresh *counts) (slept time.Duration) {
	slept = now[limiter.BoundSlept] - r.seenLedger[limiter.BoundSlept]
	if all := fresh.callTime + fresh.gateTime; all > 0 {
		r.atGate = float64(fresh.gateTime) / float64(all)
	}
	r.account.addGrowth(&r.seenLedger, now, r.atGate)
	r.seenLedger = *now
	return slept
}

// judge decides what holds the run and its lanes back, and how much they could do.
func (r *Recorder) judge(s *batch.Status) {
	for k := range s.Lanes {
		own := s.Lanes[k].Bound
		if own == limiter.BoundNone && isRunWide(s.Run.Bound) {
			own = s.Run.Bound
		}
		r.lane(r.names.slot(s.Lanes[k].Name)).vote(own)
	}
	present, state := r.currentBound(s)
	r.holder.judge(s.At, &r.account, present, state)
	r.bottleneck = r.holder.bottleneck()
	lane := r.laneToShow(&r.bottleneck, s)
	r.addNextBounds(&r.bottleneck, s, lane)
	r.allowedNow = r.allowedRate(s)
}

// note adds to the gauges, and to what the run could have done.
func (r *Recorder) note(gap time.Duration, fresh *counts) {
	r.gauges.note(&r.last, r.allowedNow, gap)
	if !math.IsInf(r.allowedNow, 1) {
		r.allowance += r.allowedNow * gap.Seconds()
		r.answeredAllowed += fresh.answered
	}
}

// caught is deferred around all functions of others. It keeps the first panic, which the last
// event raises.
func (r *Recorder) caught(what string) {
	if v := recover(); v != nil {
		err := fmt.Errorf("observe: %s panicked: %v\n%s", what, v, debug.Stack())
		r.fault.CompareAndSwap(nil, &err)
	}
}

// Config tells a [Recorder] about a run. The zero value is for a run of which nothing is
// known: no total, no prices.
//
// Price, Size, Describe, Code, Redact and OnCall are called by many workers at once. No function of a
// Config affects the run, except its error. One that panics counts as if it had known nothing.
// The first panic is passed on with the last event, so that the run's error includes
// [batch.ErrObserver].
type Config struct {
	Total  int    // items of the whole input, those of Before included; 0, and less: as [batch.WithTotal] says, or else UnknownTotal until the input has ended
	Before int    // of these, ended by earlier runs
	Work   []Work // of this run; nil: not known

	// Price returns what an item cost in USD, all its calls together. The item has no price if
	// Price returns false, or a cost outside 0..provider.MostCost. In and lane are those of [batch.End].
	// Nil: nothing has a price.
	Price func(in any, lane string, u provider.Usage) (usd float64, ok bool)
	// Size returns the length of an item's request in bytes, as in Work. Nil: the lengths are not
	// known, and forecasts count items alone.
	Size func(in any) int64
	// Describe returns an item's id and its line in the input, for examples of failures. It must
	// not keep in. Nil: the item has no id, and its line is its place in the input.
	Describe func(in any) (id string, line int)
	// Code returns the name of a failure. Nil: kind is the word of its [provider.Kind] ("panic"
	// for a panic), and code the HTTP status or else the provider's own code.
	Code func(err error) (kind, code string)
	// Redact takes secrets out of the messages of failures. Nil: the messages stay as they are.
	Redact func(string) string

	Observer func(batch.Event) // receives each event of the run, after the recorder; may be nil
	Every    time.Duration     // between snapshots; 0 and less: DefaultEvery
	OnSample func(Sample)      // receives each sample, on the observer's goroutine, which it must not hold up; may be nil
	OnCall   func(batch.Call)  // receives each call, after the recorder, in the worker that made it, which it must not hold up; may be nil
}

// Work is the part of a run's work that is for one lane.
type Work struct {
	Lane  string // its name
	Items int
	Bytes int64 // of their requests; 0: not known
}

// DefaultEvery is the period of snapshots: as often as a person can read one.
const DefaultEvery = 500 * time.Millisecond
