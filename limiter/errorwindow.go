package limiter

import "time"

// Defaults of [ErrorWindowConfig]. Between High and Low lies room, so that a rate
// that hovers about one of them does not switch with every call.
const (
	DefaultErrorWindow     = 60 * time.Second
	DefaultErrorBuckets    = 12   // of 5 s: what is forgotten at once is a twelfth
	DefaultErrorHigh       = 0.30 // a server that fails three calls in ten is in trouble
	DefaultErrorLow        = 0.10 // one in ten is what retries are for
	DefaultErrorFactor     = 0.5
	DefaultErrorHold       = 60 * time.Second // one window: by then it holds only what the halved rate met
	DefaultErrorMinSamples = 20               // below that one failure moves the rate by more than 5 points
)

// ErrorWindowConfig says when failures slow a lane down. A field that is 0 (or cannot
// be meant) has its default.
type ErrorWindowConfig struct {
	Window     time.Duration // how far back it looks
	Buckets    int           // of the window, at most 60
	High       float64       // above this share of failures: slow down
	Low        float64       // below it, and after Hold: full speed; at most High
	Factor     float64       // what the pace is multiplied by meanwhile, in (0, 1]; 1: it is never slowed down
	Hold       time.Duration // the least time it stays slow
	MinSamples int           // fewer calls than this in the window decide nothing
}

func (c ErrorWindowConfig) withDefaults() ErrorWindowConfig {
	c.Window = orElseDuration(c.Window, DefaultErrorWindow)
	c.Hold = orElseDuration(c.Hold, DefaultErrorHold)
	c.High = orElse(c.High, DefaultErrorHigh)
	c.Low = min(c.High, orElse(c.Low, DefaultErrorLow))
	c.Factor = min(1, orElse(c.Factor, DefaultErrorFactor))
	c.Buckets = min(maxSlots, orElseInt(c.Buckets, DefaultErrorBuckets))
	c.MinSamples = orElseInt(c.MinSamples, DefaultErrorMinSamples)
	return c
}

// An ErrorWindow says when the pace of a lane is to be halved, as too many of its calls
// break while others are answered. It slides in time and not in count: ten failures of
// an hour ago say nothing about now, however few calls there were since.
//
//	       rate > High, enough samples
//	1 ────────────────────────────────────▶ Factor
//	  ◀────────────────────────────────────
//	       rate < Low at some moment after Hold
//
// What it counts are calls that were answered and calls that broke. Refusals say nothing
// about the server's health, whatever their status. What opens a breaker, what flies
// then, and what happens until it closes is the breaker's affair: the lane has stopped
// for that, and need not go slower for it as well.
//
//	│ answered, broke │ a row of failures ─▶ Broken ─▶ probes ─▶ Closed │ answered, broke │
//	└──── counted ────┘ └──────────── not counted, whenever it ends ──┘ └──── counted ────┘
//
// Only heed, Broken and Closed write. The zero value has the default configuration.
type ErrorWindow struct {
	slowed  bool
	down    bool // a breaker is open
	row     uint32
	calls   tallies
	holding time.Duration      // slowed: the earliest time to be restored; this and the next two since the window began
	closed  time.Duration      // a breaker was last: what left before does not count; 0: none was
	rowAt   time.Duration      // when the row of failures began
	config  *ErrorWindowConfig // complete, and never written to; nil: usualErrors
}

// usualErrors is what the windows of nearly all lanes share.
var usualErrors = ErrorWindowConfig{}.withDefaults()

// NewErrorWindow gives an empty window at full speed.
func NewErrorWindow(c ErrorWindowConfig) ErrorWindow {
	if c == (ErrorWindowConfig{}) {
		return ErrorWindow{}
	}
	complete := c.withDefaults()
	return ErrorWindow{config: &complete}
}

func (e *ErrorWindow) settings() *ErrorWindowConfig {
	if e.config == nil {
		return &usualErrors
	}
	return e.config
}

// Concerns reports whether the end of a call that left at sent counts: not while a
// breaker is open, nor if the call left before that was closed.
func (e *ErrorWindow) Concerns(sent time.Time) bool {
	return !e.down && (e.closed == 0 || sent.Sub(e.calls.origin) >= e.closed)
}

// errorLook is how long a law looks on before it goes slower: in its first seconds, and in
// those after a breaker has closed, it feels for its pace, and half of what that is then is
// no pace to keep for a minute. It is also long enough for a share that is under High not to
// be over it by chance, or because a call breaks sooner than another is answered.
const errorLook = 10 * time.Second

// heed counts the end of one call, and reports whether the lane is to be slowed down with this.
func (e *ErrorWindow) heed(now time.Time, failed bool) bool {
	since := e.since(now)
	e.count(since, failed)
	return since-e.closed >= errorLook && e.decide(since)
}

// since is how long ago the window began; it begins now at the latest.
func (e *ErrorWindow) since(now time.Time) time.Duration {
	if !e.calls.begun() {
		e.begin(now)
	}
	return now.Sub(e.calls.origin)
}

func (e *ErrorWindow) begin(now time.Time) {
	c := e.settings()
	e.calls.begin(now, c.Window, c.Buckets)
}

func (e *ErrorWindow) count(since time.Duration, failed bool) {
	// What came true before this call, unseen, stays true after it.
	if e.slowed && e.restored(since) {
		e.slowed = false
	}
	e.calls.add(since, failed)
	e.inRow(since, failed)
}

// decide slows the lane down, if what was counted demands it.
func (e *ErrorWindow) decide(since time.Duration) bool {
	if e.slowed || !e.tooMany() {
		return false
	}
	e.slowed, e.holding = true, since+e.settings().Hold
	return true
}

// inRow keeps the row of failures.
func (e *ErrorWindow) inRow(since time.Duration, failed bool) {
	switch {
	case !failed:
		e.row = 0
	case e.row == 0:
		e.row, e.rowAt = 1, since
	default:
		e.row++
	}
}

// Broken says that a breaker has opened. What led to it is taken back: the row of
// failures, and those of the slots before in which more broke than were answered. So is
// the slowing down, if it was by these.
func (e *ErrorWindow) Broken() {
	if e.calls.begun() {
		since := e.calls.takeBack(e.row)
		if e.row > 0 {
			since = min(since, e.rowAt)
		}
		if e.slowed && e.holding-e.settings().Hold >= since {
			e.slowed = false
		}
	}
	e.down, e.row = true, 0
}

// Closed says that calls are let in again. It closes the breaker, if one was open.
func (e *ErrorWindow) Closed(now time.Time) {
	if e.down {
		e.down, e.closed = false, max(1, e.since(now))
	}
}

// Rate is the share of failures among the calls in the window, in 0..1; 0 if there
// are none.
func (e *ErrorWindow) Rate(now time.Time) float64 { return e.calls.count(now).rate() }

// Factor is what to multiply the pace by: 1, or the configured factor while slowed.
func (e *ErrorWindow) Factor(now time.Time) float64 {
	if e.slowed && !e.restored(now.Sub(e.calls.origin)) {
		return e.settings().Factor
	}
	return 1
}

// Slowed is that factor while slowed, and else 0.
func (e *ErrorWindow) Slowed(now time.Time) float64 {
	if !e.slowed {
		return 0 // for nearly every call that ends
	}
	if f := e.Factor(now); f < 1 {
		return f
	}
	return 0
}

// tooMany judges what the window holds just after a call was added.
func (e *ErrorWindow) tooMany() bool {
	t := e.calls.sum
	return t.failed > 0 && int64(t.total) >= int64(e.settings().MinSamples) && t.rate() > e.settings().High
}

// restored reports whether the rate was under Low at any moment from the end of the
// hold to this long after the window began. Between two calls it changes only as slots
// are forgotten, so looking at the slots is looking at every moment; and since it looks
// at all of them, the answer does not depend on whether anybody asked in between.
func (e *ErrorWindow) restored(since time.Duration) bool {
	if !e.slowed || since < e.holding {
		return false
	}
	w := &e.calls
	empty := w.head + w.slots // in this slot everything is forgotten
	last := min(w.slotSince(since), empty)
	for slot := min(w.slotSince(e.holding), empty); slot <= last; slot++ {
		if w.countAt(slot).rate() < e.settings().Low {
			return true
		}
	}
	return false
}
