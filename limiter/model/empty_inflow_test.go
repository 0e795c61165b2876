package model

import (
	"fmt"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// What is let in of what left after a refusal is a measure of what flows in, unless too little left, or nearly
// all of it was let in.
func TestEbbed(t *testing.T) {
	for _, c := range []struct{ calls, refused, want float64 }{
		{40, 20, 500},
		{40, 10, 750},
		{40, 36, 100},
		{40, 8, 800},
		{19, 10, 0},
		{40, 40, 0},
		{40, 7, 0},
		{40, 0, 0},
		{0, 0, 0},
	} {
		var s sends
		s.add(0.5, one)
		for i := range int(c.calls) {
			at := 1 + 0.002*float64(i+1)
			s.add(at, one)
			if float64(i) < c.refused {
				s.bookRefusal(at, 1)
			}
		}
		want(t, fmt.Sprintf("of %v calls %v refused", c.calls, c.refused), s.emptyInflow(interval{1, 2, 1000}), c.want)
	}
}

// A lane that bursts and pauses sees the same of a shallow bucket that refills as fast as it bursts, and of a deep one
// that refills as fast as all of it. What is let in of the calls that are on their way when a refusal comes tells them
// apart: else the pace of the bursts is believed for minutes, and each of them ends in refusals.
func TestTheTopOfABurstIsNoRate(t *testing.T) {
	const rate, way = 400, 0.15
	for _, depth := range []float64{5, 20} {
		var all, over float64
		for seed := range uint64(32) {
			rng, pail := seeded(seed+1), fullPail(rate, rate*depth)
			w := newLawWorld(limiter.LawConfig{}, seed, func(at float64, _ int) reply {
				if pail.takes(max(pail.last, at+way/2*rng.Float64()), 1) {
					return reply{kind: isAnswered, after: 0.7 * (0.7 + 0.6*rng.Float64())}
				}
				return reply{kind: isRefused, after: way * (0.7 + 0.6*rng.Float64())}
			})
			w.run(40, 1<<30)
			sent, refused := len(w.sent), w.refused
			w.run(130, 1<<30)
			sent, refused = len(w.sent)-sent, w.refused-refused
			used := float64(sent-refused) / (90 * rate)
			t.Logf("depth %v s, seed %d: %.3f used, %d of %d refused", depth, seed, used, refused, sent)
			if used < 0.97 {
				t.Errorf("depth %v s, seed %d: %.3f of the limit used", depth, seed, used)
			}
			all, over = all+float64(sent), over+float64(refused)
		}
		t.Logf("depth %v s: %.4f of calls refused", depth, over/all)
		if over > 0.035*all {
			t.Errorf("depth %v s: %.3f of calls refused", depth, over/all)
		}
	}
}
