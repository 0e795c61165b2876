package limiter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Defaults of [BreakerConfig].
const (
	DefaultBreakerWindow      = 30 * time.Second
	DefaultBreakerMinSamples  = 10
	DefaultBreakerConsecutive = 10 // at 20 % failures by chance once in ten million calls
	DefaultBreakerOpenFor     = 4 * time.Second
	DefaultBreakerMaxOpen     = 20 * time.Second // the most an outage's end is noticed late
	DefaultBreakerSuccesses   = 1

	// BreakerGrowth is the factor by which each reopening lengthens the open interval. Four
	// reopenings lead from the default OpenFor to MaxOpen; an outage of a minute costs five
	// probes.
	BreakerGrowth = 1.5

	// breakerSlots divides the window: it forgets a tenth at once.
	breakerSlots = 10
)

// BreakerConfig says when the breaker gives a lane up for a while. A field that is 0 (or cannot
// be meant) has its default.
type BreakerConfig struct {
	Window      time.Duration // how far back failures are counted, for FailureRate
	MinSamples  int           // fewer calls than this in the window decide nothing by rate
	FailureRate float64       // share of failures that opens; 0 or more than 1: never by rate
	Consecutive int           // failures in a row that open; less than 0: never
	OpenFor     time.Duration // the first open interval
	MaxOpen     time.Duration // the longest
	Successes   int           // of probes, one after the other, that close
}

// withDefaults puts the default in place of each field that is 0 or cannot be meant.
func (c BreakerConfig) withDefaults() BreakerConfig {
	c.Window = measure.OrElseDuration(c.Window, DefaultBreakerWindow)
	c.OpenFor = measure.OrElseDuration(c.OpenFor, DefaultBreakerOpenFor)
	c.MaxOpen = measure.OrElseDuration(c.MaxOpen, DefaultBreakerMaxOpen)
	if c.Consecutive == 0 {
		c.Consecutive = DefaultBreakerConsecutive
	}
	c.MinSamples = measure.OrElseInt(c.MinSamples, DefaultBreakerMinSamples)
	c.Successes = measure.OrElseInt(c.Successes, DefaultBreakerSuccesses)
	return c
}

// A BreakerState is what a [Breaker] does with calls.
type BreakerState uint8

// The states of a [Breaker].
const (
	Closed   BreakerState = iota // calls flow
	Open                         // no call is made
	HalfOpen                     // one call at a time is made, to see
)

// String returns the state in a word. Memories contain it, so it must not change.
func (s BreakerState) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// A Breaker stops calls to a server that is down.
//
//	          too many failures                    interval over
//	Closed ───────────────────────▶ Open ─────────────────────────▶ HalfOpen
//	  ▲                              ▲        first failure            │ │
//	  │                              └──── interval × 1.5 ─────────────┘ │
//	  └───────────────── enough successes, all forgotten ────────────────┘
//
// Too many is a number of failures in a row or, where FailureRate is set, a share of the calls
// in the window. By default there is no such share: where others are answered, the server is
// not down. A failure is an error that says the server is down: 5xx, a broken connection, a
// timeout. A 429 never is, for it says the server is up and counting: the caller does not
// report it here. Nor does it report calls that were sent before the breaker last opened. An
// open breaker ignores such news.
//
// The zero value is closed, with the default configuration. Copies of a breaker that opens by a
// share of failures count together.
type Breaker struct {
	state       BreakerState     // Open may be HalfOpen by now: see State
	probing     bool             // half-open: the permit is out
	consecutive int32            // failures in the present row
	calls       *measure.Tallies // nil: no share of failures opens it, or nothing was counted yet
	until       time.Time        // of the open interval, zero while closed
	reopened    int32            // times since it was last closed
	successes   int32            // half-open
	config      BreakerConfig
}

// NewBreaker returns a closed breaker.
func NewBreaker(c BreakerConfig) Breaker { return Breaker{config: c} }

// State returns the state of the breaker at now.
func (b *Breaker) State(now time.Time) BreakerState {
	if b.state == Open && !now.Before(b.until) {
		return HalfOpen
	}
	return b.state
}

// Until returns when the present open interval ends, or ended if the breaker is half-open. It
// returns the zero time if the breaker is closed.
func (b *Breaker) Until() time.Time { return b.until }

// Row returns the number of failures in the present row. While the breaker is not closed it is
// the row that opened it.
func (b *Breaker) Row() int { return int(b.consecutive) }

// Reopened returns the number of probes that have failed since the breaker opened.
func (b *Breaker) Reopened() int { return int(b.reopened) }

// FailuresInRow returns the number of calls that have failed in the present row, half-open
// probes included.
func (b *Breaker) FailuresInRow() int { return b.Row() + b.Reopened() }

// Allow reports whether a call may be made now. While half-open there is one permit. Allow takes
// it, and Success, Failure or Abandon gives it back.
func (b *Breaker) Allow(now time.Time) bool {
	b.advance(now)
	if b.state != HalfOpen {
		return b.state == Closed
	}
	if b.probing {
		return false
	}
	b.probing = true
	return true
}

// Success reports that a call was answered. endsRow says that this ends the present row of
// failures. The answer of a call that left before the row began does not end it: a server that goes
// down often still answers calls that are under way.
func (b *Breaker) Success(now time.Time, endsRow bool) {
	b.advance(now)
	switch b.state {
	case Closed:
		if endsRow {
			b.consecutive = 0
		}
		b.countCall(now, false)
	case HalfOpen:
		b.probing = false
		b.successes++
		if int(b.successes) >= b.config.withDefaults().Successes {
			*b = Breaker{config: b.config}
		}
	}
}

// Failure reports that a call failed because the server is down. It returns whether this opened the
// breaker. A row shorter than minRow does not open it, whatever Consecutive says.
func (b *Breaker) Failure(now time.Time, minRow int) bool {
	b.advance(now)
	switch b.state {
	case Closed:
		b.consecutive++
		b.countCall(now, true)
		if !b.shouldOpen(now, minRow) {
			return false
		}
	case HalfOpen:
		b.reopened++
	case Open:
		return false
	}
	b.open(now)
	return true
}

// Opens reports whether a row of so many failures would open the breaker by itself.
func (b *Breaker) Opens(row int) bool {
	n := b.config.withDefaults().Consecutive
	return n > 0 && row >= n
}

// Close closes the breaker, which has opened by mistake.
func (b *Breaker) Close() { *b = Breaker{config: b.config} }

// Abandon gives the half-open permit back: the call was not made, or its end said
// nothing about the server.
func (b *Breaker) Abandon(now time.Time) {
	b.advance(now)
	b.probing = false
}

// advance turns an open breaker whose interval is over into a half-open one.
func (b *Breaker) advance(now time.Time) {
	if b.state != b.State(now) {
		b.state, b.probing, b.successes = HalfOpen, false, 0
	}
}

func (b *Breaker) open(now time.Time) {
	c := b.config.withDefaults()
	b.state, b.probing = Open, false
	b.until = now.Add(measure.Grown(c.OpenFor, BreakerGrowth, b.Reopened(), c.MaxOpen))
}

// byRate reports whether a share of failures opens it.
func (c *BreakerConfig) byRate() bool { return c.FailureRate > 0 && c.FailureRate <= 1 }

// countCall adds a call's outcome to the window, if a share of failures may open the breaker.
func (b *Breaker) countCall(now time.Time, failed bool) {
	if !b.config.byRate() {
		return
	}
	if b.calls == nil {
		b.calls = &measure.Tallies{}
		b.calls.Begin(now, b.config.withDefaults().Window, breakerSlots)
	}
	b.calls.Add(now.Sub(b.calls.Origin), failed)
}

// shouldOpen reports whether the breaker must open now. It must after a row of failures of at least
// minRow, or when the share of failures in the window is too large.
func (b *Breaker) shouldOpen(now time.Time, minRow int) bool {
	c := b.config.withDefaults()
	if c.Consecutive > 0 && b.Row() >= max(c.Consecutive, minRow) {
		return true
	}
	if !c.byRate() {
		return false
	}
	t := b.calls.Count(now)
	return int64(t.Total) >= int64(c.MinSamples) && t.Rate() >= c.FailureRate
}

// A BreakerMemory is the part of a [Breaker]'s state that is worth keeping over a restart. The
// zero value is a closed one.
type BreakerMemory struct {
	State    string    `json:"state"`          // as [BreakerState.String]
	At       time.Time `json:"at"`             // when it was saved
	Until    time.Time `json:"until,omitzero"` // the end of its open interval
	Reopened int       `json:"reopened"`       // times since it was last closed
}

// Save returns the breaker's memory for a restart. The window of calls is not in it: it is half
// a minute long.
func (b *Breaker) Save(now time.Time) BreakerMemory {
	k := BreakerMemory{State: b.State(now).String(), At: measure.WallAt(now, 0), Reopened: b.Reopened()}
	if b.state != Closed {
		k.Until = measure.WallAt(now, b.until.Sub(now).Seconds())
	}
	return k
}

// reopenedMost is the most reopenings that Restore believes: by then the interval is as long as
// it gets.
const reopenedMost = 64

// Restore takes over the memory of an earlier breaker, before the first call. A breaker that was
// open or half-open is open for the rest of its interval. If the interval ended longer ago than
// failures count, the breaker is closed. Impossible values are left out. A row that opened nothing
// begins anew: the items in it would count twice.
func (b *Breaker) Restore(now time.Time, memory BreakerMemory) {
	c := b.config.withDefaults()
	*b = Breaker{config: b.config}
	if memory.State == Open.String() || memory.State == HalfOpen.String() {
		if memory.Until.IsZero() || now.Sub(memory.Until) >= c.Window {
			return
		}
		b.state, b.reopened = Open, int32(min(max(0, memory.Reopened), reopenedMost))
		b.until = now.Add(min(c.MaxOpen, memory.Until.Sub(now)))
	}
}

// Defaults of [BackoffConfig].
const (
	DefaultBackoffBase   = 500 * time.Millisecond // a server that was reset is back in about that
	DefaultBackoffMax    = 30 * time.Second       // longer waits are an outage, which is the breaker's
	DefaultBackoffFactor = 2.0
)

// BackoffFloor is the share of the first bound that every delay has at least: a
// twentieth of a second by default, about one round trip. Full jitter alone may draw
// 0, and a call that failed this instant fails again for the same reason.
const BackoffFloor = 0.1

// BackoffConfig sets the wait of an item after a failed attempt. A field that is 0 (or cannot
// be meant) has its default.
type BackoffConfig struct {
	Base   time.Duration // the bound of the first delay
	Max    time.Duration // the bound of all delays
	Factor float64       // by which the bound grows, 1 or more
}

// withDefaults puts the default in place of each field that is 0 or cannot be meant.
func (c BackoffConfig) withDefaults() BackoffConfig {
	c.Base = measure.OrElseDuration(c.Base, DefaultBackoffBase)
	c.Max = measure.OrElseDuration(c.Max, DefaultBackoffMax)
	if !(c.Factor >= 1) {
		c.Factor = DefaultBackoffFactor
	}
	return c
}

// A Backoff draws the delays before retries: exponential, with full jitter. Full
// jitter spreads the retries of calls that failed together over the whole span, where
// a small jitter lets them collide again (Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015). The zero value has the default configuration.
type Backoff struct{ config BackoffConfig }

// NewBackoff returns a backoff.
func NewBackoff(c BackoffConfig) Backoff { return Backoff{config: c} }

// Delay returns the wait after the given attempt failed; the first is 1. It is uniform between
// a tenth of Base and min(Max, Base·Factor^(attempt−1)), whatever the attempt. The generator
// must not be nil; the same seed gives the same delays.
func (b Backoff) Delay(attempt int, rng *rand.Rand) time.Duration {
	c := b.config.withDefaults()
	most := measure.Grown(c.Base, c.Factor, max(0, attempt-1), c.Max)
	least := BackoffFloor * float64(min(c.Base, c.Max))
	return time.Duration(least + rng.Float64()*(float64(most)-least))
}

// Bounds of the memory of a [Latency].
const (
	// LatencyWeight is the weight of the newest sample in the mean, λ. At 0.2 a
	// sample's weight is halved after three more and under 1 % after twenty: quick
	// to see a change, too slow to be led by one outlier.
	LatencyWeight = 0.2

	// LatencySamples is the size of the ring for the percentile. With 128 samples
	// six lie above the 95th percentile, so that no single one decides it.
	LatencySamples = 128
)

// A MeanLatency follows the latency of calls, exponentially weighted. The zero value is ready.
type MeanLatency struct {
	mean  float64 // ns
	count int
}

// Observe adds a latency. A negative one counts as 0.
func (l *MeanLatency) Observe(d time.Duration) {
	sample := float64(measure.Bounded(max(0, d)))
	if l.count == 0 {
		l.mean = sample
	}
	l.mean += LatencyWeight * (sample - l.mean)
	l.count++
}

// Count returns the number of samples in all.
func (l *MeanLatency) Count() int { return l.count }

// Mean returns the exponentially weighted mean; 0 before the first sample, and that sample
// after it.
func (l *MeanLatency) Mean() time.Duration { return time.Duration(l.mean) }

// A Latency is a [MeanLatency] that also knows the 95th percentile of the last
// [LatencySamples], to seven digits. The zero value is ready.
type Latency struct {
	MeanLatency
	ring [LatencySamples]float32 // ns; sample i is at i%LatencySamples
}

// Observe adds a sample. A negative one counts as 0.
func (l *Latency) Observe(d time.Duration) {
	l.ring[l.count%LatencySamples] = float32(measure.Bounded(max(0, d)))
	l.MeanLatency.Observe(d)
}

// last returns the samples that are judged, in no meaningful order.
func (l *Latency) last() []float32 { return l.ring[:min(l.count, LatencySamples)] }

// P95 returns the 95th percentile by nearest rank, 0 before the first sample. It is the smallest
// sample such that at least 95 % of those in the ring are not above it. It sorts a copy.
func (l *Latency) P95() time.Duration {
	if l.count == 0 {
		return 0
	}
	var samples [LatencySamples]float32
	sorted := samples[:copy(samples[:], l.last())]
	slices.Sort(sorted)
	return time.Duration(sorted[rank95(len(sorted))-1])
}

// rank95 is ⌈0.95·n⌉, in whole numbers so that no rounding moves it.
func rank95(n int) int { return (95*n + 99) / 100 }
