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
	Factor     float64       // what the rate is multiplied by meanwhile, in (0, 1]
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

// An ErrorWindow halves the rate of a lane that fails too often. It slides in time
// and not in count: ten failures of an hour ago say nothing about now, however few
// calls there were since.
//
//	       rate > High, enough samples
//	1 ────────────────────────────────────▶ Factor
//	  ◀────────────────────────────────────
//	       rate < Low at some moment after Hold
//
// Only [ErrorWindow.Record] writes. Calls that were throttled, or that failed by
// their own fault, are not recorded by the caller: they say nothing about the
// server's health. The zero value has the default configuration.
type ErrorWindow struct {
	slowed  bool
	calls   window
	holding time.Time          // slowed: the earliest time to be restored
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

// Record counts the end of one call, and changes speed if that is due.
func (e *ErrorWindow) Record(now time.Time, failed bool) {
	if !e.calls.begun() {
		c := e.settings()
		e.calls.begin(now, c.Window, c.Buckets)
	}
	// What came true before this call, unseen, stays true after it.
	if e.restored(now) {
		e.slowed = false
	}
	e.calls.add(now, failed)
	if !e.slowed && e.tooMany() {
		e.slowed, e.holding = true, now.Add(e.settings().Hold)
	}
}

// Rate is the share of failures among the calls in the window, in 0..1; 0 if there
// are none.
func (e *ErrorWindow) Rate(now time.Time) float64 { return e.calls.count(now).rate() }

// Factor is what to multiply the rate by: 1, or the configured factor while slowed.
func (e *ErrorWindow) Factor(now time.Time) float64 {
	if e.slowed && !e.restored(now) {
		return e.settings().Factor
	}
	return 1
}

// tooMany judges what the window holds just after a call was added.
func (e *ErrorWindow) tooMany() bool {
	t := e.calls.sum
	return t.failed > 0 && int64(t.total) >= int64(e.settings().MinSamples) && t.rate() > e.settings().High
}

// restored reports whether the rate was under Low at any moment from the end of the
// hold to now. Between two calls it changes only as slots are forgotten, so looking at
// the slots is looking at every moment; and since it looks at all of them, the answer
// does not depend on whether anybody asked in between.
func (e *ErrorWindow) restored(now time.Time) bool {
	if !e.slowed || now.Before(e.holding) {
		return false
	}
	w := &e.calls
	empty := w.head + w.slots // in this slot everything is forgotten
	last := min(w.slotAt(now), empty)
	for slot := min(w.slotAt(e.holding), empty); slot <= last; slot++ {
		if w.countAt(slot).rate() < e.settings().Low {
			return true
		}
	}
	return false
}
