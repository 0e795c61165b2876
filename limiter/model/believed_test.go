package model

import (
	"math"
	"testing"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// A rate that was learned from refusals alone, with no header and nothing told, holds
// calls back: one refusal by itself may be chance, but those of a bucket are not taken
// for that.
func TestLearnedRatePaces(t *testing.T) {
	w := newLawWorld(limiter.LawConfig{}, 1, bucketServer(fullPail(10, 20), 0.5))
	w.run(120, 1e9)
	near(t, "rate", viewOf(w.law, at(120)).Rate, 10, 2.5)
	near(t, "calls a second", w.between(60, 120), 10, 1.5)
	if share := float64(w.refused) / float64(len(w.sent)); share > 0.1 {
		t.Errorf("%d of %d calls were refused", w.refused, len(w.sent))
	}
}

// sane fails if anything that a law answers is no number, or none that can be meant.
func isSane(t *testing.T, law limiter.Law, seconds float64) {
	t.Helper()
	now := at(seconds)
	wait, _ := law.Wait(now, limiter.Cost{Requests: 1, Input: 10})
	if wait < 0 || wait > measure.MaxWait {
		t.Fatalf("after %v s a call waits %v", seconds, wait)
	}
	for what, x := range map[string]float64{"pace": viewOf(law, now).Most, "rate": viewOf(law, now).Rate} {
		if math.IsNaN(x) || x <= 0 {
			t.Fatalf("after %v s the %s is %v", seconds, what, x)
		}
	}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		if x := viewOf(law, now).Level(d); math.IsNaN(x) || math.IsInf(x, -1) {
			t.Fatalf("after %v s there are %v %v left", seconds, x, d)
		}
	}
}

// What was learned outlasts a time in which it is not needed: silence of who does not ask
// says nothing of the limit. A lane that learned ten a second and then gets a call
// every eight seconds believes about ten a second after minutes, and after hours.
func TestQuietLaneForgetsNothing(t *testing.T) {
	for seed := range uint64(5) {
		w := newLawWorld(limiter.LawConfig{}, seed, bucketServer(fullPail(10, 20), 0.5))
		w.run(120, 1e9)
		near(t, "rate before", viewOf(w.law, at(120)).Rate, 10, 3)
		w.every, w.wish = 8, 120
		for _, later := range []float64{120, 600, 5 * 3600} {
			w.run(120+later, 1e9)
			if rate := viewOf(w.law, at(w.now)).Rate; !(rate >= 5 && rate <= 20) {
				t.Errorf("seed %d: %v s later the rate is taken for %v", seed, later, rate)
			}
			isSane(t, w.law, w.now)
		}
		// What overflowed meanwhile is no evidence of a lower rate.
		before := w.now
		w.every, w.wish = 0, 0
		w.run(before+60, 1e9)
		near(t, "calls a second once they are asked for again", w.between(before+20, before+60), 10, 2)
	}
}
