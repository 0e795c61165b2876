package window

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// complete returns c with its default for each field that is 0 or cannot be meant.
func complete(c limiter.ErrorWindowConfig) limiter.ErrorWindowConfig {
	c.Window = measure.OrElseDuration(c.Window, limiter.DefaultErrorWindow)
	c.Hold = measure.OrElseDuration(c.Hold, limiter.DefaultErrorHold)
	c.High = measure.OrElse(c.High, limiter.DefaultErrorHigh)
	c.Low = min(c.High, measure.OrElse(c.Low, limiter.DefaultErrorLow))
	c.Factor = min(1, measure.OrElse(c.Factor, limiter.DefaultErrorFactor))
	c.Buckets = min(measure.MaxSlots, measure.OrElseInt(c.Buckets, limiter.DefaultErrorBuckets))
	c.MinSamples = measure.OrElseInt(c.MinSamples, limiter.DefaultErrorMinSamples)
	return c
}

// Errors says when to halve the pace of a lane, as too many of its calls break while others are
// answered. It slides in time and not in count: ten failures of an hour ago say nothing about
// now, however few calls there were since.
//
//	       rate > High, enough samples
//	1 ────────────────────────────────────▶ Factor
//	  ◀────────────────────────────────────
//	       rate < Low at some moment after Hold
//
// It counts calls that were answered and calls that broke. Refusals say nothing about the
// server's health, whatever their status. The breaker deals with the calls that open it, those
// in flight then, and those until it closes. The lane has stopped for them, and need not go
// slower as well.
//
//	│ answered, broke │ a row of failures ─▶ Broken ─▶ probes ─▶ Closed │ answered, broke │
//	└──── counted ────┘ └──────────── not counted, whenever it ends ──┘ └──── counted ────┘
//
// Only Watch, Broken and Closed write. The zero value has the default configuration.
type Errors struct {
	slowed  bool
	down    bool // a breaker is open
	row     uint32
	calls   measure.Tallies
	holding time.Duration              // slowed: the earliest time to be restored; this and the next two since the window began
	closed  time.Duration              // a breaker was last: calls that left before do not count; 0: there was none
	rowAt   time.Duration              // when the row of failures began
	config  *limiter.ErrorWindowConfig // complete, and never written to; nil: usualErrors
}

// usualErrors is the configuration that nearly all lanes share.
var usualErrors = complete(limiter.ErrorWindowConfig{})

// NewErrors returns an empty window at full speed.
func NewErrors(c limiter.ErrorWindowConfig) Errors {
	if c == (limiter.ErrorWindowConfig{}) {
		return Errors{}
	}
	whole := complete(c)
	return Errors{config: &whole}
}

func (e *Errors) settings() *limiter.ErrorWindowConfig {
	if e.config == nil {
		return &usualErrors
	}
	return e.config
}

// Concerns reports whether the end of a call that left at sent counts: not while a breaker is
// open, nor if the call left before the breaker closed.
func (e *Errors) Concerns(sent time.Time) bool {
	return !e.down && (e.closed == 0 || sent.Sub(e.calls.Origin) >= e.closed)
}

// watchTime is the time for which a law only watches before it goes slower. In its first
// seconds, and after a breaker has closed, it feels for its pace. Half of that is no pace to
// keep for a minute. The time also keeps a share that is under High from seeming over it, by
// chance or because a call breaks sooner than another is answered.
const watchTime = 10 * time.Second

// Watch counts the end of one call, and reports whether this slows the lane down.
func (e *Errors) Watch(now time.Time, failed bool) bool {
	since := e.since(now)
	e.count(since, failed)
	return since-e.closed >= watchTime && e.decide(since)
}

// since returns the time since the window began; it begins now at the latest.
func (e *Errors) since(now time.Time) time.Duration {
	if !e.calls.Begun() {
		e.begin(now)
	}
	return now.Sub(e.calls.Origin)
}

func (e *Errors) begin(now time.Time) {
	c := e.settings()
	e.calls.Begin(now, c.Window, c.Buckets)
}

// count adds a call's outcome to the window and to the row of failures.
func (e *Errors) count(since time.Duration, failed bool) {
	// What came true before this call, unseen, stays true after it.
	if e.slowed && e.restored(since) {
		e.slowed = false
	}
	e.calls.Add(since, failed)
	e.countRow(since, failed)
}

// decide slows the lane down, if the counts demand it.
func (e *Errors) decide(since time.Duration) bool {
	if e.slowed || !e.tooMany() {
		return false
	}
	e.slowed, e.holding = true, since+e.settings().Hold
	return true
}

// countRow updates the row of failures by one call's outcome.
func (e *Errors) countRow(since time.Duration, failed bool) {
	switch {
	case !failed:
		e.row = 0
	case e.row == 0:
		e.row, e.rowAt = 1, since
	default:
		e.row++
	}
}

// Broken reports that a breaker has opened. It takes back the failures that led to this: the row,
// and the slots before it in which more calls broke than were answered. If these caused the slowing
// down, that ends too.
func (e *Errors) Broken() {
	if e.calls.Begun() {
		since := e.calls.TakeBack(e.row)
		if e.row > 0 {
			since = min(since, e.rowAt)
		}
		if e.slowed && e.holding-e.settings().Hold >= since {
			e.slowed = false
		}
	}
	e.down, e.row = true, 0
}

// Closed notes that calls are let in again. It closes the breaker, if one was open.
func (e *Errors) Closed(now time.Time) {
	if e.down {
		e.down, e.closed = false, max(1, e.since(now))
	}
}

// Rate returns the share of failures among the calls in the window, in 0..1; 0 if there are
// none.
func (e *Errors) Rate(now time.Time) float64 { return e.calls.Count(now).Rate() }

// Factor returns the factor for the pace: 1, or the configured factor while slowed.
func (e *Errors) Factor(now time.Time) float64 {
	if e.slowed && !e.restored(now.Sub(e.calls.Origin)) {
		return e.settings().Factor
	}
	return 1
}

// Slowed returns the factor by which the pace is multiplied while the lane is slowed down; 0: it is
// not.
func (e *Errors) Slowed(now time.Time) float64 {
	if !e.slowed {
		return 0 // for nearly every call that ends
	}
	if f := e.Factor(now); f < 1 {
		return f
	}
	return 0
}

// tooMany judges the counts of the window just after a call was added.
func (e *Errors) tooMany() bool {
	t := e.calls.Sum
	return t.Failed > 0 && int64(t.Total) >= int64(e.settings().MinSamples) && t.Rate() > e.settings().High
}

// restored reports whether the failure rate was under Low at any moment from the end of the hold to
// since. Between two calls the rate changes only as slots are forgotten, so it looks at each slot.
// Thus the answer does not depend on whether anybody asked in between.
func (e *Errors) restored(since time.Duration) bool {
	if !e.slowed || since < e.holding {
		return false
	}
	w := &e.calls
	empty := w.Head + w.Slots // in this slot everything is forgotten
	last := min(w.SlotSince(since), empty)
	for slot := min(w.SlotSince(e.holding), empty); slot <= last; slot++ {
		if w.CountAt(slot).Rate() < e.settings().Low {
			return true
		}
	}
	return false
}

// Slows reports whether the lane was slowed down and nobody has checked since whether that is
// over; see [Errors.Slowed]. It runs for each call.
func (e *Errors) Slows() bool { return e.slowed }

// Part parts a copy from what it was copied from.
func (e *Errors) Part() { e.calls.Part() }
