package batch

import (
	"fmt"
	"testing"
	"time"
)

// thousands are 2,000 items, 64 at once, with answers of 2 s: the world of most figures.
// Without any poison it takes 70 s.
func thousands(poison float64) blameWorld {
	return blameWorld{items: 2000, answer: 2 * time.Second, poison: poison}
}

// tenMinutes is an outage of ten minutes that begins after 20 s.
var tenMinutes = []outage{{20 * time.Second, 620 * time.Second}}

// byLaw runs a test of a world under each law.
func byLaw(t *testing.T, w blameWorld, f func(t *testing.T, w blameWorld)) {
	t.Helper()
	for name, opts := range laws {
		t.Run(name, func(t *testing.T) {
			w.options = opts
			f(t, w)
		})
	}
}

// A few items that always break cost a run few seconds and five calls each. They open no
// breaker.
func TestPoisonIsNamedQuickly(t *testing.T) {
	for _, poison := range []float64{0.01, 0.1} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			byLaw(t, thousands(poison), func(t *testing.T, w blameWorld) {
				f := w.figures(t, 5)
				f.allNamed(t, 80*time.Second)
				f.calls(t, 5.5, 9)
				f.opensNothing(t)
			})
		})
	}
}

// Poison that breaks as late as an answer comes costs the time of its calls. The last item may
// add 45 s.
func TestSlowPoisonIsNamed(t *testing.T) {
	for poison, most := range map[float64]time.Duration{0.01: 110 * time.Second, 0.1: 150 * time.Second} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			w := thousands(poison)
			w.slow = true
			f := w.figures(t, 3)
			f.allNamed(t, most)
			f.calls(t, 5.5, 9)
			f.opensNothing(t)
		})
	}
}

// An outage of ten minutes takes back what poison used up in it. No good item fails, and
// poison has little more than five calls.
func TestOutageAndPoisonAreToldApart(t *testing.T) {
	for _, poison := range []float64{0, 0.01, 0.1} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			w := thousands(poison)
			w.outages = tenMinutes
			byLaw(t, w, func(t *testing.T, w blameWorld) {
				f := w.figures(t, 5)
				f.allNamed(t, 720*time.Second)
				f.calls(t, 5.5, 9)
				if f.openings == 0 {
					t.Error("the breaker did not open in the outage")
				}
			})
		})
	}
}

// Nine poison items at the end, for which no other item is left to speak, are named within a
// minute.
func TestLastItemsAreNamedQuickly(t *testing.T) {
	w := blameWorld{items: 200, last: 9, atOnce: 16, answer: time.Second}
	f := w.figures(t, 5)
	f.allNamed(t, time.Minute)
	f.calls(t, 5, 5)
	w.atOnce = 1
	f = w.figures(t, 2)
	f.allNamed(t, 191*time.Second+time.Minute) // the answers alone take 191 s
	f.calls(t, 5, 5)
}

// Probes of a dead lane cost poison nothing, and the other lane of the pool names it.
func TestDeadLaneOfTwoAndPoison(t *testing.T) {
	for _, unsent := range []bool{false, true} {
		t.Run(fmt.Sprint("unsent ", unsent), func(t *testing.T) {
			w := thousands(0.1)
			w.dead, w.unsent = map[string]bool{"other": true}, unsent
			w.options = []Option{twoLanes, WithAnsweredBefore()}
			f := w.figures(t, 3)
			f.allNamed(t, 150*time.Second)
			f.calls(t, 5.5, 14)
		})
	}
}

// A run names all poison and fails no good item also where half of the items are poison. It
// ends within an hour.
func TestHalfOfTheItemsArePoison(t *testing.T) {
	w := thousands(0.5)
	f := w.figures(t, 1)
	f.allNamed(t, time.Hour)
	f.calls(t, 11, 28)
}

// An outage of an hour fails no good item of 10,000, and all poison is named.
func TestLongOutageFailsNoGoodItem(t *testing.T) {
	w := thousands(0.01)
	w.items, w.outages = 10_000, []outage{{60 * time.Second, 3660 * time.Second}}
	f := w.figures(t, 2)
	f.allNamed(t, 4000*time.Second)
	f.calls(t, 5.5, 9)
}

// Without an outage no breaker opens while up to three items in ten are poison.
func TestPoisonOpensNoBreaker(t *testing.T) {
	for _, poison := range []float64{0.2, 0.3} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(poison, " slow ", slow), func(t *testing.T) {
				w, seeds := thousands(poison), 2
				if w.slow = slow; slow {
					seeds = 1
				}
				f := w.figures(t, seeds)
				f.allNamed(t, time.Hour)
				f.opensNothing(t)
			})
		}
	}
}

// Retries of poison leave room for good items that wait for their first call, also where the
// error window has slowed the lane.
func TestPoisonDoesNotStarveGoodItems(t *testing.T) {
	w := thousands(0.3)
	w.items, w.seed = 600, 1
	if seen := w.run(t); seen.silent > 6*time.Second {
		t.Errorf("for %v no item was answered, and good ones waited", seen.silent)
	}
}

// No item fails before it has used up its attempts.
func TestFailedItemsHadTheirAttempts(t *testing.T) {
	limited := blameWorld{items: 600, answer: 2 * time.Second, poison: 0.1, seed: 2, options: []Option{WithLimits(Limits{RPM: 300})}}
	down := thousands(0.1)
	down.outages, down.flap = tenMinutes, 20*time.Second
	for name, w := range map[string]blameWorld{"limited": limited, "down": down} {
		t.Run(name, func(t *testing.T) {
			for _, r := range w.run(t).results {
				if r.Err != nil && r.Attempts != DefaultMaxAttempts {
					t.Errorf("item %d failed after %d attempts in %d calls", r.Index, r.Attempts, r.Calls)
				}
			}
		})
	}
}

// A limit on requests is shared out between poison and good items, so that five tries cost
// poison about as many calls as without a limit.
func TestPoisonUnderALimit(t *testing.T) {
	for _, rpm := range []float64{60, 300} {
		t.Run(fmt.Sprint(rpm, " a minute"), func(t *testing.T) {
			w := blameWorld{items: 600, answer: 2 * time.Second, poison: 0.1, options: []Option{WithLimits(Limits{RPM: rpm})}}
			f := w.figures(t, 2)
			five := float64(w.items*f.worlds+4*f.poison) / float64(f.worlds) // calls of a run
			f.allNamed(t, time.Duration(1.2*five/rpm*float64(time.Minute))+45*time.Second)
			f.calls(t, 7, 12)
		})
	}
}

// Poison that breaks at once opens no breaker while all answers take 20 s. The row of failures
// must be as long as the calls under way.
func TestPoisonBreaksBeforeAnybodyIsAnswered(t *testing.T) {
	for _, poison := range []float64{0.1, 0.2} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			f := blameWorld{items: 1000, answer: 20 * time.Second, poison: poison}.figures(t, 2)
			f.allNamed(t, 20*time.Minute)
			f.calls(t, 6, 11)
			f.opensNothing(t)
		})
	}
}
