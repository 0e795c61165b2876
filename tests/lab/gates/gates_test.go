package gates

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// slow is a gate as its rule says it, without any cleverness: given what was
// admitted and charged before, may a call pass now?
type slow func(admitted []time.Duration, at time.Duration) bool

func slowWindow(n int, width time.Duration) slow {
	return func(admitted []time.Duration, at time.Duration) bool {
		in := 0
		for _, a := range admitted {
			if a/width == at/width {
				in++
			}
		}
		return in < n
	}
}

func slowSliding(n int, width time.Duration) slow {
	return func(admitted []time.Duration, at time.Duration) bool {
		in := 0
		for _, a := range admitted {
			if a > at-width {
				in++
			}
		}
		return in < n
	}
}

// slowBucket fills from the beginning each time.
func slowBucket(rate func(float64) float64, depth func(float64) float64, width float64) slow {
	return func(admitted []time.Duration, at time.Duration) bool {
		const step = 0.002
		level, next := depth(0), 0
		for t := 0.0; t < at.Seconds(); t += step {
			for next < len(admitted) && admitted[next].Seconds() <= t {
				level--
				next++
			}
			level = min(depth(t), level+step*rate(t))
		}
		return level-float64(len(admitted)-next) > 1-width
	}
}

// Each gate is what its rule says, at moments drawn at random and as dense as its
// limit. The bucket's twin goes in steps, so it is asked with a margin either way.
func TestGatesAreTheirSlowTwins(t *testing.T) {
	steady := func(float64) float64 { return 5 }
	halving := Turning(5, 0.5, 20*time.Second)
	for name, c := range map[string]struct {
		gate         Gate
		shut, opened slow // as it is if it is nearly shut, and if it is nearly open
	}{
		"windows": {NewWindow(7, 2*time.Second), slowWindow(7, 2*time.Second), slowWindow(7, 2*time.Second)},
		"sliding": {NewSliding(9, 2*time.Second), slowSliding(9, 2*time.Second), slowSliding(9, 2*time.Second)},
		"bucket": {
			NewBucket(Steady(5), 2*time.Second),
			slowBucket(steady, func(float64) float64 { return 10 }, -0.05),
			slowBucket(steady, func(float64) float64 { return 10 }, 0.05),
		},
		"spacing": {
			NewSpacing(Steady(5)),
			slowBucket(steady, func(float64) float64 { return 1 }, -0.05),
			slowBucket(steady, func(float64) float64 { return 1 }, 0.05),
		},
		"halving": {
			NewBucket(halving, 2*time.Second),
			slowBucket(halving.of, func(t float64) float64 { return 2 * halving.of(t) }, -0.05),
			slowBucket(halving.of, func(t float64) float64 { return 2 * halving.of(t) }, 0.05),
		},
	} {
		t.Run(name, func(t *testing.T) { sameAs(t, c.gate, c.shut, c.opened) })
	}
}

func sameAs(t *testing.T, g Gate, shut, opened slow) {
	rng := rand.New(rand.NewPCG(1, 2))
	var admitted []time.Duration
	at := time.Duration(0)
	for range 250 {
		at += time.Duration(rng.ExpFloat64() * 2e8)
		open, wait := g.Ask(at, 0)
		if !open && shut(admitted, at) || open && !opened(admitted, at) {
			t.Fatalf("at %v, after %d: open is %v", at, len(admitted), open)
		}
		if open != (wait == 0) {
			t.Fatalf("at %v: open is %v, and the wait %v", at, open, wait)
		}
		if open {
			g.Take(at, 0, at)
			admitted = append(admitted, at)
		} else {
			g.Refused(at, 0)
		}
	}
}

// The gate itself would admit each call at the moment at which the oracle lets it in, and
// not before: a clairvoyant does not cheat.
func TestOraclesKeepToTheirGates(t *testing.T) {
	fresh := map[string]func() Gate{
		"bucket":   func() Gate { return NewBucket(Steady(10), 5*time.Second) },
		"calls":    func() Gate { return NewBucketOf(Steady(10), 2) },
		"doubling": func() Gate { return NewBucket(Turning(10, 2, 30*time.Second), time.Second) },
		"drifting": func() Gate { return NewBucket(Drifting(10), time.Second) },
		"spacing":  func() Gate { return NewSpacing(Steady(10)) },
		"windows":  func() Gate { return NewWindow(30, 3*time.Second) },
		"sliding":  func() Gate { return NewSliding(30, 3*time.Second) },
		"cap":      func() Gate { return NewCap(12) },
		"penalty":  func() Gate { return &Penalty{} },
	}
	for name, make := range fresh {
		t.Run(name, func(t *testing.T) {
			oracle, gate, at := make(), make(), time.Duration(0)
			for i := range 1000 {
				before := at
				at = oracle.Next(at, 0)
				if open, _ := gate.Ask(at, 0); !open {
					t.Fatalf("call %d at %v is let in, and the gate is shut", i, at)
				}
				if at < before || at-before > 4*time.Second {
					t.Fatalf("call %d waits from %v to %v", i, before, at)
				}
				until := at + time.Second + time.Duration(i%7)*100*time.Millisecond
				oracle.Take(at, 0, until)
				gate.Take(at, 0, until)
			}
		})
	}
}

// A refused call that is charged makes the wait longer, down to minus the depth.
func TestChargedRefusals(t *testing.T) {
	b := NewBucketOf(Steady(1), 3)
	b.Charged = true
	w := NewWindow(3, 10*time.Second)
	w.Charged = true
	s := NewSliding(3, 10*time.Second)
	s.Charged = true
	for range 3 {
		b.Take(0, 0, 0)
		w.Take(0, 0, 0)
		s.Take(0, 0, 0)
	}
	for i := range 10 {
		b.Refused(0, 0)
		w.Refused(0, 0)
		s.Refused(time.Duration(i+1)*time.Second, 0)
	}
	if _, wait := b.Ask(0, 0); math.Abs(wait.Seconds()-4) > 1e-3 {
		t.Errorf("bucket: wait %v, not the 4 s from minus three to one", wait)
	}
	if at := w.Next(0, 0); at != 20*time.Second {
		t.Errorf("windows: open at %v, not when the next has paid for three", at)
	}
	if at := s.Next(9*time.Second, 0); at != 11*time.Second {
		t.Errorf("sliding: open at %v, and three were refused at 1, 2 and 3 s", at)
	}
}

// One refusal is forgiven; the second within five seconds costs ten, and so does
// one in the box.
func TestPenalty(t *testing.T) {
	p := &Penalty{}
	open := func(at time.Duration) bool { ok, _ := p.Ask(at, 0); return ok }
	p.Refused(1*time.Second, 0)
	p.Refused(7*time.Second, 0)
	if !open(8 * time.Second) {
		t.Error("shut after two refusals six seconds apart")
	}
	p.Refused(9*time.Second, 0)
	if open(18*time.Second) || !open(19*time.Second) {
		t.Error("not shut for ten seconds")
	}
	p.Refused(12*time.Second, 0)
	if open(21*time.Second) || !open(22*time.Second) {
		t.Error("a refusal in the box does not make it longer")
	}
}

// It grows only if it is asked for, and only so far.
func TestScaler(t *testing.T) {
	idle, busy := NewScaler(10), NewScaler(10)
	for at := time.Duration(0); at < 3*time.Minute; at += 10 * time.Millisecond {
		busy.Ask(at, 0)
		if at%time.Second == 0 {
			idle.Ask(at, 0)
		}
	}
	if idle.rate != 2 || busy.rate != 50 {
		t.Errorf("asked for half of it: %v a second; for all: %v", idle.rate, busy.rate)
	}
}

// The walk stays where it may, about its mean, and is the same for the oracle.
func TestWalk(t *testing.T) {
	a, b := newWalk(3), newWalk(3)
	var sum float64
	const n = 20000
	for i := range n {
		x := a.of(float64(i))
		sum += x
		if x < poolLeast || x > poolMost {
			t.Fatalf("%v at %d s", x, i)
		}
	}
	if b.of(n-1) != a.of(n-1) {
		t.Error("two walks of one seed")
	}
	if math.Abs(sum/n-poolMean) > 0.05 {
		t.Errorf("mean %.3f", sum/n)
	}
	if bestLoad < 0.75 || bestLoad > 0.85 {
		t.Errorf("the best steady load gets %v", bestLoad)
	}
}
