package limiter

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Each delay is between a tenth of the base and its bound, which doubles to the
// maximum, and comes near both ends.
func TestBackoffDelays(t *testing.T) {
	rng := seeded(1)
	var b Backoff
	for attempt, bound := range map[int]time.Duration{
		-5: 500 * time.Millisecond, 0: 500 * time.Millisecond, 1: 500 * time.Millisecond,
		2: time.Second, 3: 2 * time.Second, 6: 16 * time.Second, 7: 30 * time.Second,
		100: 30 * time.Second, 1 << 30: 30 * time.Second, math.MaxInt: 30 * time.Second,
	} {
		least, most := time.Hour, time.Duration(0)
		for range 2000 {
			d := b.Delay(attempt, rng)
			least, most = min(least, d), max(most, d)
		}
		if least < 50*time.Millisecond || most > bound {
			t.Errorf("attempt %d: %v to %v", attempt, least, most)
		}
		near(t, "least", least.Seconds(), 0.05, 0.01*bound.Seconds())
		near(t, "most", most.Seconds(), bound.Seconds(), 0.01*bound.Seconds())
	}
}

// The same seed gives the same delays.
func TestBackoffIsSeeded(t *testing.T) {
	var b Backoff
	one, two := seeded(7), seeded(7)
	for attempt := range 20 {
		want(t, "delay", b.Delay(attempt, one), b.Delay(attempt, two))
	}
}

// Settings that cannot be meant have their defaults; a base over the maximum is it.
func TestBackoffConfig(t *testing.T) {
	expected := BackoffConfig{500 * time.Millisecond, 30 * time.Second, 2}
	for _, c := range []BackoffConfig{{}, {-1, -1, -1}, {0, 0, 0.5}, {0, 0, math.NaN()}} {
		want(t, "config", c.withDefaults(), expected)
	}
	b := NewBackoff(BackoffConfig{Base: time.Hour, Max: time.Second})
	for range 100 {
		if d := b.Delay(1, seeded(1)); d < 100*time.Millisecond || d > time.Second {
			t.Errorf("delay %v", d)
		}
	}
}

// Growth by a factor of one stays, and by infinity is the maximum at once.
func TestGrown(t *testing.T) {
	want(t, "1", measure.Grown(time.Second, 1, 1<<30, time.Hour), time.Second)
	want(t, "inf", measure.Grown(time.Second, math.Inf(1), 1, time.Hour), time.Hour)
	want(t, "max", measure.Grown(math.MaxInt64, 2, 60, math.MaxInt64), math.MaxInt64)
}
