package gates

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// passes counts the calls that a gate lets in of so many that arrive at a moment.
func passes(g Gate, at time.Duration, calls int) (in int) {
	for range calls {
		if open, _ := g.Ask(at, 0); open {
			g.Take(at, 0, at)
			in++
		} else {
			g.Refused(at, 0)
		}
	}
	return in
}

// Of 200 calls in ten seconds the 201st is refused, and what passes later is as each
// middleware counts.
func TestMiddlewaresRefuseThe201st(t *testing.T) {
	const n, width = 200, 10 * time.Second
	charged := NewCounter(n, width)
	charged.Charged = true
	for name, c := range map[string]struct {
		gate  Gate
		later map[time.Duration]int // 300 arrive at each; in order of time
		order []time.Duration
	}{
		"httprate": { // at 15 s half of the first window counts, at 16 s those of 15 s as well
			gate: NewCounter(n, width), order: []time.Duration{9, 15, 16, 40},
			later: map[time.Duration]int{9: 0, 15: 100, 16: 20, 40: 200},
		},
		"HAProxy": { // what is refused counts, too: at 29 s a tenth of the 600 of 15 and 19 s does
			gate: charged, order: []time.Duration{9, 15, 19, 29, 60},
			later: map[time.Duration]int{9: 0, 15: 0, 19: 0, 29: 140, 60: 200},
		},
		"ulule": { // its window begins with the first call, at 3 s
			gate: NewExpiring(n, width), order: []time.Duration{12, 13, 22, 23},
			later: map[time.Duration]int{12: 0, 13: 200, 22: 0, 23: 200},
		},
		"plain": {
			gate: NewWindow(n, width), order: []time.Duration{9, 10, 19, 20},
			later: map[time.Duration]int{9: 0, 10: 200, 19: 0, 20: 200},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if in := passes(c.gate, 3*time.Second, n); in != n {
				t.Fatalf("%d of the first %d pass", in, n)
			}
			if open, wait := c.gate.Ask(3*time.Second, 0); open || wait <= 0 {
				t.Fatalf("the 201st: open is %v, wait %v", open, wait)
			}
			for _, at := range c.order {
				if in := passes(c.gate, at*time.Second, 300); in != c.later[at] {
					t.Errorf("at %d s %d pass, not %d", at, in, c.later[at])
				}
			}
		})
	}
}

// Each gate opens when it said that it would, and not a millisecond before.
func TestMiddlewaresNameTheirWait(t *testing.T) {
	for name, fresh := range map[string]func() Gate{
		"httprate": func() Gate { return NewCounter(20, 2*time.Second) },
		"ulule":    func() Gate { return NewExpiring(20, 2*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			rng, g, at, waits := rand.New(rand.NewPCG(1, 2)), fresh(), time.Duration(0), 0
			for range 2000 {
				at += time.Duration(rng.ExpFloat64() * 4e7)
				open, wait := g.Ask(at, 0)
				if !open {
					waits++
					if early, _ := g.Ask(at+wait-min(wait, time.Millisecond), 0); early && wait > time.Millisecond {
						t.Fatalf("at %v it is to wait %v, and need not", at, wait)
					}
					at = g.Next(at, 0)
				}
				if open, _ := g.Ask(at, 0); !open {
					t.Fatalf("shut at %v, when it should be open", at)
				}
				g.Take(at, 0, at)
			}
			if waits < 50 {
				t.Errorf("refused %d times only", waits)
			}
		})
	}
}

// Headers of middlewares print the limit as it is, what is left, and whole seconds.
func TestMiddlewaresPrint(t *testing.T) {
	half := 500 * time.Millisecond
	counter, expiring := NewCounter(200, 10*time.Second), NewExpiring(200, 10*time.Second)
	passes(counter, 3*time.Second+half, 50)
	passes(expiring, 3*time.Second+half, 50)
	for _, c := range []struct {
		name string
		gate teller
		at   time.Duration
		want sim.Quota
	}{
		{"httprate", counter, 4 * time.Second, sim.Quota{Limit: 200, Remaining: 150, Reset: 6 * time.Second}},
		{"httprate, half later", counter, 15 * time.Second, sim.Quota{Limit: 200, Remaining: 175, Reset: 5 * time.Second}},
		{"ulule", expiring, 4*time.Second + half, sim.Quota{Limit: 200, Remaining: 150, Reset: 9 * time.Second}},
		{"ulule, expired", expiring, 14 * time.Second, sim.Quota{Limit: 200, Remaining: 200}},
	} {
		if d, q := c.gate.quota(c.at); d != sim.Requests || q != c.want {
			t.Errorf("%s: %v %+v, not %+v", c.name, d, q, c.want)
		}
	}
	bucket := NewBucketOf(Steady(50), 21)
	passes(bucket, 0, 100)
	_, q := bucket.quota(100 * time.Millisecond)
	if got := AsGCRA(21)(0, q, 0); got.Limit != 21 || got.Reset != time.Second || got.Remaining < 4.9 || got.Remaining > 5.1 {
		t.Errorf("GCRA: %+v", got)
	}
}

// A window of tokens that slides lets its tokens in and no more, and a call passes once
// enough of what it needs is older than the window.
func TestTokenLog(t *testing.T) {
	l := NewTokenLog(100, time.Minute)
	for i, tokens := range []float64{30, 30, 40} {
		at := time.Duration(i) * 10 * time.Second
		if open, _ := l.Ask(at, tokens); !open {
			t.Fatalf("call %d is refused", i)
		}
		l.Take(at, tokens, at)
	}
	for tokens, want := range map[float64]time.Duration{1: 60 * time.Second, 31: 70 * time.Second, 100: 80 * time.Second} {
		if at := l.Next(30*time.Second, tokens); at != want {
			t.Errorf("%v tokens pass at %v, not at %v", tokens, at, want)
		}
	}
	if _, wait := l.Ask(30*time.Second, 101); wait != never {
		t.Errorf("more than the limit waits %v", wait)
	}
}
