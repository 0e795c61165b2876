package window

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"
)

// Chance does not take away what nobody but the pace bounds: of calls that are wished for
// evenly and take longer or shorter, next to none waits for the window.
func TestMeanWindowBearsChance(t *testing.T) {
	for _, perSecond := range []float64{3, 10, 40} {
		w, rng := Mean{Target: 1200 * time.Millisecond}, seeded(7)
		var flying []flown
		cooled, calls := 0, 20_000
		for i := range calls {
			now := float64(i) / perSecond
			for len(flying) > 0 && flying[0].ends < now {
				w.Answered(at(flying[0].ends), flying[0].took, flying[0].beside)
				flying = flying[1:]
			}
			if len(flying) >= w.Size() {
				cooled++
				continue
			}
			took := math.Exp(0.5*rng.NormFloat64() - 0.125)
			flying = append(flying, flown{now + took, time.Duration(took * 1e9), len(flying)})
			slices.SortFunc(flying, func(a, b flown) int { return cmp.Compare(a.ends, b.ends) })
		}
		if cooled > calls/50 {
			t.Errorf("%v a second: %d of %d calls were held back", perSecond, cooled, calls)
		}
	}
}

type flown struct {
	ends   float64
	took   time.Duration
	beside int
}

// Without a target there is no window, whatever latency is.
func TestMeanWindowIsOffUnlessAskedFor(t *testing.T) {
	var none Mean
	want(t, "zero", none.Size(), 0)
	none.Answered(noon, time.Hour, 5)
	none.Faulted(noon)
	want(t, "none", none, Mean{})
}

// Calls that left before the window shrank say what it was shrunk for: they do not shrink
// it again, however many of them are still to be answered.
func TestCallsOfBeforeDoNotShrinkTheMeanWindowAgain(t *testing.T) {
	w := Mean{Target: time.Second, size: 100, over: true}
	for i := range 400 {
		w.Answered(at(float64(i)/50), 2*time.Second, 99)
	}
	want(t, "size", w.Size(), 50)
}
