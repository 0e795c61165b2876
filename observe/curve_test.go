package observe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// Between two moments a curve rises evenly; before the earliest that it knows it was flat;
// and the latest is always there.
func TestCurve(t *testing.T) {
	c := curve{gap: time.Second, room: 10}
	if c.at(time.Second) != 0 || c.speed(time.Minute) != 0 || c.now() != 0 {
		t.Error("of nothing there is nothing")
	}
	for k := range 101 {
		c.add(time.Duration(k)*250*time.Millisecond, float64(k))
	}
	if len(c.points) != 10 || c.now() != 25*time.Second || c.at(25*time.Second) != 100 || c.at(time.Hour) != 100 {
		t.Errorf("%+v", c)
	}
	if got := c.at(20*time.Second + 100*time.Millisecond); math.Abs(got-80.4) > 1e-9 {
		t.Errorf("%v at 20.1 s", got)
	}
	if c.at(0) != c.get(0).n || c.speed(5*time.Second) != 4 {
		t.Errorf("%v at the beginning, %v a second", c.at(0), c.speed(5*time.Second))
	}
}

// Whatever is added, a curve never falls and says at each of its moments what was said.
func TestCurveNeverFalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		c := curve{gap: time.Duration(rng.Int64N(2e9)), room: 2 + rng.IntN(20)}
		at, n := time.Duration(0), 0.0
		for range 100 {
			at += time.Duration(rng.Int64N(2e9))
			n += float64(rng.IntN(3))
			c.add(at, n)
			if c.at(at) != n || c.now() != at {
				t.Fatalf("%v at %v, not %v", c.at(at), at, n)
			}
		}
		for d, last := time.Duration(0), 0.0; d < at; d += at / 97 {
			if got := c.at(d); got < last {
				t.Fatalf("falls from %v to %v at %v", last, got, d)
			} else {
				last = got
			}
		}
	}
}

// Speeds are of equal spans up to now; together they are what has ended in that time.
func TestSpeeds(t *testing.T) {
	w := newWorld(Config{})
	if got, span := w.Speeds(37); got != nil || span != 0 {
		t.Errorf("%v in %v", got, span)
	}
	lane := statusOf(0, learned("l", 0, 0))
	w.goes(11, machine.BoundInput, lane, 10)
	got, span := w.Speeds(37)
	if len(got) != 11 || span != 11*time.Second || !near(got[10], 10) {
		t.Errorf("%v in %v", got, span)
	}
	w.goes(600, machine.BoundInput, lane, 10)
	w.goes(300, machine.BoundInput, lane, 30)
	got, span = w.Speeds(37)
	sum := 0.0
	for _, s := range got {
		sum += s * span.Seconds() / 37
	}
	if len(got) != 37 || span != 10*time.Minute || !near(got[0], 10) || !near(got[36], 30) || math.Abs(sum-300*40) > 1 {
		t.Errorf("%v in %v: %v", got, span, sum)
	}
	if _, span = w.Speeds(124); span != 911*time.Second {
		t.Errorf("a run of 911 s shows %v", span)
	}
	if got, span = w.Speeds(1); len(got) != 1 || span != time.Minute {
		t.Errorf("%v in %v", got, span)
	}
	for cells, want := range map[int]time.Duration{37: 10 * time.Minute, 124: 30 * time.Minute, 400: time.Hour, 9: 2 * time.Minute} {
		if got := sparkSpan(time.Duration(cells) * cellSpan); got != want {
			t.Errorf("%d cells show %v, not %v", cells, got, want)
		}
	}
}
