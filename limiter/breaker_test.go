package limiter

import (
	"math"
	"testing"
	"time"
)

// fails reports n failures and returns which of them opened the breaker, 0 if none.
func fails(b *Breaker, now time.Time, n int) (opened int) {
	for i := range n {
		if b.Failure(now, 0) {
			opened = i + 1
		}
	}
	return opened
}

// A breaker starts closed and lets everything through.
func TestBreakerStartsClosed(t *testing.T) {
	var b Breaker
	for range 100 {
		want(t, "allow", b.Allow(noon), true)
	}
	want(t, "state", b.State(noon), Closed)
	want(t, "until", b.Until(), time.Time{})
}

// Ten failures in a row open it, and say so once.
func TestBreakerOpensOnConsecutiveFailures(t *testing.T) {
	var b Breaker
	want(t, "nine", fails(&b, noon, 9), 0)
	b.Success(noon, true)
	want(t, "nine again", fails(&b, noon, 9), 0)
	want(t, "the tenth", b.Failure(noon, 0), true)
	want(t, "later news is ignored", fails(&b, at(1), 50), 0)
	want(t, "state", b.State(at(1)), Open)
	want(t, "until", b.Until(), at(4))
	want(t, "allow", b.Allow(at(3.9)), false)
}

// Where a share is set, it opens the breaker once there are ten calls in the window.
func TestBreakerOpensOnFailureRate(t *testing.T) {
	b := NewBreaker(BreakerConfig{Consecutive: -1, FailureRate: 0.6})
	want(t, "nine failures are too few calls", fails(&b, noon, 9), 0)
	want(t, "ten are enough", b.Failure(noon, 0), true)
	b = NewBreaker(BreakerConfig{FailureRate: 0.6})
	for range 4 {
		b.Success(noon, true)
	}
	want(t, "five of nine", fails(&b, noon, 5), 0)
	want(t, "six of ten", b.Failure(noon, 0), true)
}

// Where none is set, no share opens it: nine of ten calls may fail as long as the tenth is
// answered.
func TestBreakerDoesNotOpenByRate(t *testing.T) {
	for _, rate := range []float64{0, 2, math.NaN()} {
		b := NewBreaker(BreakerConfig{FailureRate: rate})
		for range 100 {
			want(t, "nine of ten", fails(&b, noon, 9), 0)
			b.Success(noon, true)
		}
	}
}

// A row must be as long as the caller says, if that is more than the configured number.
func TestBreakerTakesALongerRow(t *testing.T) {
	var b Breaker
	for range 24 {
		want(t, "too short a row", b.Failure(noon, 25), false)
	}
	want(t, "row", b.Row(), 24)
	want(t, "long enough", b.Failure(noon, 25), true)
}

// An answer that was on its way before the row began does not end the row.
func TestBreakerKeepsItsRow(t *testing.T) {
	var b Breaker
	fails(&b, noon, 9)
	b.Success(noon, false)
	want(t, "the tenth", b.Failure(noon, 0), true)
}

// Failures that are older than the window do not count.
func TestBreakerForgetsOldFailures(t *testing.T) {
	b := NewBreaker(BreakerConfig{Consecutive: -1, FailureRate: 0.6})
	fails(&b, noon, 9)
	want(t, "within the window", b.State(at(29)), Closed)
	want(t, "after it", fails(&b, at(30), 9), 0)
	want(t, "enough new ones", b.Failure(at(30), 0), true)
}

// A half-open breaker lets one call through at a time, and a permit that was given back
// can be taken again.
func TestBreakerHalfOpenPermit(t *testing.T) {
	b := NewBreaker(BreakerConfig{Successes: 3})
	fails(&b, noon, 10)
	want(t, "state", b.State(at(4)), HalfOpen)
	want(t, "first", b.Allow(at(4)), true)
	want(t, "second", b.Allow(at(4)), false)
	b.Abandon(at(4))
	want(t, "given back", b.Allow(at(4)), true)
	b.Success(at(5), true)
	want(t, "it is back", b.Allow(at(5)), true)
	want(t, "and gone again", b.Allow(at(5)), false)
}

// Enough successes close it, and everything from before is forgotten.
func TestBreakerCloses(t *testing.T) {
	b := NewBreaker(BreakerConfig{Successes: 2})
	fails(&b, noon, 10)
	b.Allow(at(4))
	b.Success(at(4), true)
	want(t, "one success", b.State(at(4)), HalfOpen)
	b.Allow(at(5))
	b.Success(at(5), true)
	want(t, "two", b.State(at(5)), Closed)
	want(t, "until", b.Until(), time.Time{})
	want(t, "old failures are forgotten", fails(&b, at(5), 9), 0)
	want(t, "the interval is the first again", fails(&b, at(5), 1), 1)
	want(t, "until", b.Until(), at(9))
}

// The first failure while half-open opens it again, each time for half as long again,
// up to twenty seconds.
func TestBreakerReopensForLonger(t *testing.T) {
	var b Breaker
	fails(&b, noon, 10)
	now := b.Until()
	for _, seconds := range []float64{6, 9, 13.5, 20, 20, 20} {
		want(t, "allow", b.Allow(now), true)
		want(t, "reopened", b.Failure(now, 0), true)
		want(t, "until", b.Until(), now.Add(time.Duration(seconds*1e9)))
		want(t, "allow", b.Allow(now), false)
		now = b.Until()
	}
}

// News that comes while it is open changes nothing.
func TestBreakerIgnoresNewsWhileOpen(t *testing.T) {
	var b Breaker
	fails(&b, noon, 10)
	open := b
	b.Success(at(1), true)
	b.Failure(at(2), 0)
	b.Abandon(at(3))
	want(t, "breaker", b, open)
	want(t, "a permit cannot be given back that was not taken", b.Allow(at(4)) && !b.Allow(at(4)), true)
}

// A clock that goes back does not open a half-open breaker again.
func TestBreakerClockGoesBack(t *testing.T) {
	var b Breaker
	fails(&b, noon, 10)
	b.Allow(at(4))
	want(t, "state", b.State(at(3)), HalfOpen)
	b.Abandon(at(3))
	want(t, "allow", b.Allow(at(3)), true)
}

// States have names.
func TestBreakerStateNames(t *testing.T) {
	for s, name := range []string{"closed", "open", "half-open", "state(3)"} {
		want(t, "name", BreakerState(s).String(), name)
	}
}

// Settings that cannot be meant have their defaults.
func TestBreakerConfigDefaults(t *testing.T) {
	expected := BreakerConfig{30 * time.Second, 10, 0, 10, 4 * time.Second, 20 * time.Second, 1}
	want(t, "zero", BreakerConfig{}.withDefaults(), expected)
	want(t, "senseless", BreakerConfig{-1, -1, 0, 0, -1, -1, -1}.withDefaults(), expected)
	b := NewBreaker(BreakerConfig{OpenFor: time.Minute})
	fails(&b, noon, 10)
	want(t, "never longer than MaxOpen", b.Until(), at(20))
}

// While it is half-open one call is out at most, it is never
// open for longer than MaxOpen, and it never lets a call through before Until,
// whatever happens in whatever order.
func FuzzBreaker(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0xf3, 0, 2, 0, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		b, now, out := NewBreaker(BreakerConfig{Successes: 2}), noon, false
		for _, op := range script {
			now = now.Add(time.Duration(op>>4) * 500 * time.Millisecond)
			before := b.State(now)
			switch op % 4 {
			case 0:
				allowed := b.Allow(now)
				if allowed && (before == Open || out) {
					t.Fatalf("allowed while %v, with a probe out: %v: %+v", before, out, b)
				}
				out = out || allowed && before == HalfOpen
			case 1:
				if b.Failure(now, 0) != (before != Open && b.State(now) == Open) {
					t.Fatalf("did not say whether it opened: %+v", b)
				}
			case 2:
				b.Success(now, true)
			case 3:
				b.Abandon(now)
			}
			out = out && op%4 == 0 // any other is its end
			if b.Until().Sub(now) > 20*time.Second {
				t.Fatalf("out of bounds: %+v", b)
			}
		}
	})
}

// A breaker that was open is open for the rest of its interval, and is tried then; an
// hour later it is closed.
func TestBreakerRemembers(t *testing.T) {
	b := NewBreaker(BreakerConfig{})
	for range DefaultBreakerConsecutive {
		b.Failure(noon, 0)
	}
	k := b.Save(at(1))
	for seconds, state := range map[float64]BreakerState{1: Open, 3.9: Open, 4: HalfOpen, 30: HalfOpen, 3600: Closed, -3600: Open} {
		next := NewBreaker(BreakerConfig{})
		next.Restore(at(seconds), k)
		want(t, "state", next.State(at(seconds)), state)
		if wait := next.Until().Sub(at(seconds)); wait > DefaultBreakerMaxOpen {
			t.Errorf("open for %v", wait)
		}
	}
	half := NewBreaker(BreakerConfig{})
	half.Restore(at(5), k)
	half.Allow(at(5))
	half.Failure(at(5), 0)
	k = half.Save(at(6))
	want(t, "reopened", k.Reopened, 1)
	for saved, believed := range map[int]int{1: 1, reopenedMost: reopenedMost, 1 << 40: reopenedMost, -3: 0} {
		k.Reopened = saved
		again := NewBreaker(BreakerConfig{})
		again.Restore(at(6), k)
		want(t, "reopened, as it is believed", again.Reopened(), believed)
	}
	closed := NewBreaker(BreakerConfig{})
	for range DefaultBreakerConsecutive - 1 {
		closed.Failure(at(5), 0)
	}
	closed.Restore(at(6), closed.Save(at(6)))
	want(t, "one failure more opens", closed.Failure(at(6), 0), false)
	closed.Restore(at(6), BreakerMemory{State: "none", At: at(5), Until: at(1000)})
	want(t, "nonsense", closed.State(at(6)), Closed)
}
