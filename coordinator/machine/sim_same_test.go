package machine

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/internal/seeds"
	"github.com/headrace/headrace/limiter"
)

// The same facts at the same times give the same decisions, word for word.
func TestSameFactsSameDecisions(t *testing.T) {
	for seed := range uint64(race.Fewer(100)) {
		var stories [2]seeds.Tail
		for i := range stories {
			simulate(newPlan(seed, allItems, 0), stories[i].Add)
		}
		if stories[0].String() != stories[1].String() {
			t.Fatalf("seed %d tells two stories", seed)
		}
	}
}

// How often a machine is recounted changes nothing: a world in which that is done after each step tells
// the same story. So a world that fails by a late look also fails where it is repeated closely.
func TestLooksChangeNothing(t *testing.T) {
	seeds.Each(t, simSeeds, 8, func(seed uint64) {
		var stories [2]seeds.Tail
		simulate(newPlan(seed, allItems, 0), stories[0].Add)
		simulate(closePlan(seed, allItems, 0), stories[1].Add)
		if stories[0].String() != stories[1].String() {
			t.Errorf("seed %d tells two stories", seed)
		}
	})
}

// A watcher takes pictures of a machine: every 200 ms, as a terminal does, or at moments of
// chance, some of which are those of what happens.
type watcher struct {
	rng   *rand.Rand
	every time.Duration // 0: by chance
	next  time.Time
}

// mostLooks bounds what is spent on a time in which nothing happens.
const mostLooks = 20

// watch looks at the machine some times within the time that passes. The nil watcher does not.
func (w *watcher) watch(m *Machine, from, to time.Time) {
	if w == nil {
		return
	}
	for _, at := range w.moments(from, to) {
		m.Status(at, w.rng.IntN(5))
		m.RunCounters(1)
		m.SaveLanes(at)
		for _, l := range m.lanes {
			l.law.View(at, limiter.Cost{Requests: 1, Input: 100})
		}
	}
}

func (w *watcher) moments(from, to time.Time) (at []time.Time) {
	if w.every == 0 {
		for range w.rng.IntN(5) {
			at = append(at, from.Add(time.Duration(w.rng.Int64N(int64(to.Sub(from))+1))))
		}
		slices.SortFunc(at, time.Time.Compare)
		return at
	}
	for ; !w.next.After(to) && len(at) < mostLooks; w.next = w.next.Add(w.every) {
		at = append(at, w.next)
	}
	if w.next.Before(to) {
		w.next = to
	}
	return at
}

// retell lets the world of a seed happen, with a watcher or without, and gives a sum of all
// that was decided and when, and of what is known in the end.
func retell(seed uint64, watcher *watcher) (sum, lines uint64) {
	return retold(newPlan(seed, allItems, 0), watcher)
}

func retold(p *plan, watcher *watcher) (sum, lines uint64) {
	h := fnv.New64a()
	w := newWorld(p, func(format string, args ...any) {
		fmt.Fprintf(h, format, args...)
		lines++
	})
	w.bare, w.watcher = true, watcher
	if why := w.happen(); why != "" {
		fmt.Fprint(h, why) // which TestSimulation tells
	}
	known, err := json.Marshal(w.m.SaveLanes(w.now))
	fmt.Fprint(h, string(known), err)
	return h.Sum64(), lines
}

// Looking changes nothing: a machine of which a picture is taken every 200 ms, or at any
// moment, decides the same at the same moments as one that nobody looks at, and knows the
// same in the end.
func TestSimulationIsTheSameWhenWatched(t *testing.T) {
	seeds.Each(t, simSeeds, 8, func(seed uint64) {
		by := &watcher{rng: rand.New(rand.NewPCG(seed, 3)), next: storyStart}
		if seed%2 == 0 {
			by.every = 200 * time.Millisecond
		}
		alone, lines := retell(seed, nil)
		if watched, n := retell(seed, by); alone != watched {
			t.Errorf("seed %d tells two stories, of %d lines and of %d where somebody looked", seed, lines, n)
		}
	})
}

// To say long waits changes nothing: a machine that is woken to look for them decides the
// same at the same moments as one that never says any.
func TestSayingLongWaitsChangesNothing(t *testing.T) {
	seeds.Each(t, simSeeds, 4, func(seed uint64) {
		quiet := newPlan(seed, allItems, 0)
		quiet.machine.LongWait = -1
		silent, lines := retold(quiet, nil)
		if said, n := retell(seed, nil); silent != said {
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
