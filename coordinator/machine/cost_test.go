package machine

import (
	"runtime"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// everyLaw are the lanes whose cost is bounded, by what one calls them.
var everyLaw = map[string]LaneConfig{
	"plain":      {Law: limiter.Plain},
	"plain told": {Law: limiter.Plain, Limits: configured},
	"model":      {Limits: configured},
	"local":      {Local: true},
	"latency":    {Limits: configured, Target: time.Second},
	"plain mean": {Law: limiter.Plain, Target: time.Second},
}

// pass offers the items anew and serves them, and is the owner's whole work for
// them.
func (w *bench) pass(t testing.TB, items []Item) {
	for i := range items {
		items[i] = w.item(i)
	}
	w.serve(t, len(items), func(i int) *Item { return &items[i] })
	w.m.totals = tally{} // serve compares it with its own
}

// An item allocates nothing on its way through the machine, once its lane knows all
// that it will remember.
func TestItemsAllocateNothing(t *testing.T) {
	for name, c := range everyLaw {
		w, items := newBench(64, 4, c), make([]Item, 1024)
		for range race.Fewer(160) { // at 2,560 moments for each lane; a model remembers 2048
			w.pass(t, items)
		}
		// The two slices of serve, its closure, and a window that was judged or a slice
		// that grew once more, for a thousand items.
		if got := testing.AllocsPerRun(20, func() { w.pass(t, items) }); got > 6 {
			t.Errorf("%s: a thousand items allocate %v times", name, got)
		}
	}
}

// A refusal allocates nothing: a wave of them comes when there is the least time. The remaining
// allocations are those of the law that the reset makes.
func TestRefusalsAllocateNothing(t *testing.T) {
	m, now := New(Config{Lane: LaneConfig{Law: limiter.Plain}}), storyStart
	m.Step(now, RunOpened(1, RunConfig{Concurrency: 64}))
	items := make([]*Item, 64)
	for i := range items {
		items[i] = &Item{Seq: uint64(i)}
	}
	m.Step(now, Offered(1, items))
	grants := make([]Grant, 0, 64)
	got := testing.AllocsPerRun(100, func() {
		grants = append(grants[:0], m.Ready(now).Grants...)
		for _, g := range grants {
			m.Step(now, HandedOver(g, Outcome{Signal: Throttled, Latency: time.Millisecond}))
		}
		m.Step(now, LaneReset(DefaultPool))
	})
	if len(grants) != 64 || got > 1 {
		t.Errorf("%d refusals and a reset allocate %v times", len(grants), got)
	}
}

// laneBytes bounds the size of a lane that was called once, with its pool and its share of the
// maps: ten thousand of them take 32 MB.
const laneBytes = 3200

// A lane is small until it is used a lot.
func TestIdleLanesAreSmall(t *testing.T) {
	const lanes = 2000
	for name, c := range everyLaw {
		w, items := newBench(64, lanes, c), make([]Item, lanes)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.pass(t, items)
		runtime.ReadMemStats(&after)
		bytes := (after.TotalAlloc - before.TotalAlloc) / lanes
		t.Logf("%s: %d bytes", name, bytes)
		if bytes > laneBytes {
			t.Errorf("%s: %d bytes were allocated for each lane, want at most %d", name, bytes, laneBytes)
		}
	}
}

// A counted law counts how often it is asked.
type countedLaw struct {
	limiter.Law
	waits *int
}

func (c countedLaw) Wait(now time.Time, cost limiter.Cost) (time.Duration, limiter.Bound) {
	*c.waits++
	return c.Law.Wait(now, cost)
}

// Each call asks a law once, however many lanes there are and however many items
// wait: what cannot go is not looked at again for every call that ends.
func TestEachCallAsksOnce(t *testing.T) {
	for _, c := range []struct {
		lanes, workers int
		lane           LaneConfig
	}{{1, 64, LaneConfig{Law: limiter.Plain}}, {100, 64, LaneConfig{Law: limiter.Plain}}, {100, 4096, LaneConfig{Law: limiter.Plain}}, {1, 64, LaneConfig{Law: limiter.Plain, Window: 1}}, {10, 256, LaneConfig{Law: limiter.Plain, Window: 2}}} {
		w, items := newBench(c.workers, c.lanes, c.lane), make([]Item, 2000)
		w.pass(t, items)
		waits := 0
		for _, l := range w.m.lanes {
			l.law = countedLaw{l.law, &waits}
		}
		w.pass(t, items)
		if waits != len(items) {
			t.Errorf("%d lanes, %d workers, window %d: %d calls asked %d times", c.lanes, c.workers, c.lane.Window, len(items), waits)
		}
	}
}
