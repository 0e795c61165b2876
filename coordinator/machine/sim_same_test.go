package machine

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The same facts at the same times give the same decisions, word for word.
func TestSameFactsSameDecisions(t *testing.T) {
	for seed := range uint64(100) {
		var stories [2]tail
		for i := range stories {
			simulate(newPlan(seed, 1<<30, 0), stories[i].add)
		}
		if !slices.Equal(stories[0].lines, stories[1].lines) {
			t.Fatalf("seed %d tells two stories", seed)
		}
	}
}

// retell lets the world of a seed happen, with a watcher or without, and gives a sum of all
// that was decided and when.
func retell(seed uint64, watched bool) (sum, lines uint64) {
	return retold(newPlan(seed, 1<<30, 0), watched)
}

func retold(p *plan, watched bool) (sum, lines uint64) {
	h, seed := fnv.New64a(), p.seed
	w := newWorld(p, func(format string, args ...any) {
		fmt.Fprintf(h, format, args...)
		lines++
	})
	w.bare = true
	if watched {
		w.watcher = rand.New(rand.NewPCG(seed, 3))
	}
	w.run()
	return h.Sum64(), lines
}

// Looking changes nothing: a machine whose status is asked for again and again decides the
// same at the same moments as one that nobody looks at.
func TestLookingChangesNothing(t *testing.T) {
	eachSeed(t, func(seed uint64) {
		alone, lines := retell(seed, false)
		if watched, n := retell(seed, true); alone != watched {
			t.Errorf("seed %d tells two stories, of %d lines and of %d where somebody looked", seed, lines, n)
		}
	})
}

// To say long waits changes nothing: a machine that is woken to look for them decides the
// same at the same moments as one that never says any.
func TestSayingLongWaitsChangesNothing(t *testing.T) {
	eachSeed(t, func(seed uint64) {
		quiet := newPlan(seed, 1<<30, 0)
		quiet.machine.LongWait = -1
		silent, lines := retold(quiet, false)
		if said, n := retell(seed, false); silent != said {
			t.Errorf("seed %d tells two stories, of %d lines and of %d where waits are said", seed, lines, n)
		}
	})
}

// A run that is watched makes as many calls in its first second as one that is not.
func TestWatchedRunIsNoFaster(t *testing.T) {
	calls := func(looks int) int {
		b := newBed(LaneConfig{}, RunConfig{Concurrency: 100})
		b.offer(100, "", 0)
		for ms := range 1000 {
			b.wait(time.Millisecond)
			for i := range looks {
				b.Status(b.now.Add(time.Duration(i)*time.Microsecond), 1+ms%2)
			}
		}
		return len(b.calls)
	}
	if alone, watched := calls(0), calls(100); alone != watched || alone < 2 {
		t.Errorf("%d calls in the first second, and %d when watched", alone, watched)
	}
}
