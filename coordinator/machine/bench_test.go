package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// configured limits nothing that is measured here, but makes the law count.
var configured = limiter.Limits{RPM: 1e9, TPM: 1e12}

// What an item costs the owner from offer to end: the machine's share of a call.
// The aim is 300 ns and one allocation (the slice and the item of the caller are
// made outside), and with ten thousand lanes no more than twice that.
func BenchmarkMachine(b *testing.B) {
	for _, c := range []struct {
		name  string
		lanes int
		lane  LaneConfig
	}{
		{"lanes=1", 1, LaneConfig{Law: limiter.Plain}},
		{"lanes=1/limits=told", 1, LaneConfig{Law: limiter.Plain, Limits: configured}},
		{"lanes=1/law=model", 1, LaneConfig{Limits: configured}},
		{"lanes=1/law=local", 1, LaneConfig{Local: true}},
		{"lanes=1000", 1000, LaneConfig{Law: limiter.Plain}},
		{"lanes=1000/limits=told", 1000, LaneConfig{Law: limiter.Plain, Limits: configured}},
		{"lanes=10000", 10000, LaneConfig{Law: limiter.Plain}},
		{"lanes=10000/law=model", 10000, LaneConfig{Limits: configured}},
		{"lanes=10000/law=local", 10000, LaneConfig{Local: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newBench(64, c.lanes, c.lane)
			items := make([]Item, b.N)
			for i := range items {
				items[i] = w.item(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			w.serve(b, b.N, func(i int) *Item { return &items[i] })
		})
	}
}

// What an item costs where one of three measures grows: calls in flight, items,
// lanes. Items are made as they come, as a reader would.
func BenchmarkScale(b *testing.B) {
	for _, c := range []struct{ workers, items, lanes int }{
		{1, 100_000, 1},
		{16, 100_000, 1},
		{256, 100_000, 1},
		{4096, 100_000, 1},
		{256, 1000, 1},
		{256, 1_000_000, 1},
		{256, 100_000, 10},
		{256, 100_000, 1000},
		{256, 100_000, 10_000},
		{4096, 1_000_000, 10_000},
	} {
		b.Run(fmt.Sprintf("workers=%d/items=%s/lanes=%d", c.workers, thousands(c.items), c.lanes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := newBench(c.workers, c.lanes, LaneConfig{Limits: configured})
				w.serve(b, c.items, w.fresh())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.items), "ns/item")
		})
	}
}

func thousands(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// fresh makes items by the chunk.
func (w *bench) fresh() func(int) *Item {
	var chunk []Item
	return func(i int) *Item {
		if len(chunk) == 0 {
			chunk = make([]Item, 64)
		}
		it := &chunk[0]
		*it, chunk = w.item(i), chunk[1:]
		return it
	}
}

// What a pass costs in which nothing can go: the ledger is kept there too.
func BenchmarkPass(b *testing.B) {
	w := newBench(1, 1, LaneConfig{Limits: configured})
	it := w.item(0)
	w.m.Step(w.now, Offered(1, []*Item{&it}))
	w.m.Ready(w.now)
	for b.Loop() {
		w.now = w.now.Add(time.Microsecond)
		w.m.Step(w.now, Offered(1, nil))
		w.m.Ready(w.now)
	}
}

// A bench is a machine with one run and a window of calls in flight.
type bench struct {
	m       *Machine
	now     time.Time
	names   []string
	workers int
}

// newBench begins at a moment with a monotonic reading, as an owner's have.
func newBench(workers, lanes int, c LaneConfig) *bench {
	w := &bench{m: New(Config{Lane: c}), now: time.Now(), names: make([]string, lanes), workers: workers}
	w.m.Step(w.now, RunOpened(1, RunConfig{Concurrency: workers}))
	for i := range w.names {
		w.names[i] = fmt.Sprintf("lane%d", i)
	}
	return w
}

// serve offers n items, each of another lane than the last, and settles them: in
// each pass as many as there are workers.
func (w *bench) serve(b testing.TB, n int, item func(int) *Item) {
	batch := make([]*Item, 0, w.workers)
	grants := make([]Grant, 0, w.workers)
	good := Outcome{Signal: Succeeded, Latency: time.Second}
	for next, done := 0, 0; done < n; {
		for batch = batch[:0]; len(batch) < cap(batch) && next < n; next++ {
			batch = append(batch, item(next))
		}
		w.now = w.now.Add(time.Millisecond)
		w.m.Step(w.now, Offered(1, batch))
		grants = append(grants, w.m.Ready(w.now).Grants...)
		for _, g := range grants {
			w.m.Step(w.now, Settled(g, good))
		}
		done += len(grants)
		grants = append(grants[:0], w.m.Ready(w.now).Grants...) // those that a full window held back
	}
	if c := w.m.totals.counters(); c.Settled != uint64(n) {
		b.Fatalf("%d of %d settled", c.Settled, n)
	}
}

// item is the i-th that the bench is to serve.
func (w *bench) item(i int) Item {
	return Item{Seq: uint64(i), Pool: w.names[i%len(w.names)], Cost: limiter.Cost{Requests: 1, Input: 100}}
}

// What a burst of refusals costs: park and give out again.
func BenchmarkRefused(b *testing.B) {
	m, now := New(Config{Lane: LaneConfig{Law: limiter.Plain}}), storyStart
	m.Step(now, RunOpened(1, RunConfig{Concurrency: 64}))
	items := make([]*Item, 64)
	for i := range items {
		items[i] = &Item{Seq: uint64(i)}
	}
	m.Step(now, Offered(1, items))
	refused := Outcome{Signal: Throttled, Latency: time.Millisecond}
	var grants []Grant
	b.ReportAllocs()
	for b.Loop() {
		grants = append(grants[:0], m.Ready(now).Grants...)
		for _, g := range grants {
			m.Step(now, HandedOver(g, refused))
		}
		m.Step(now, LaneReset(DefaultPool))
	}
}

// manyLanes returns a machine with a pool of so many lanes, each of which is paced, and n items.
func manyLanes(law limiter.LawName, count, n int) *Machine {
	m := New(Config{Lane: LaneConfig{Law: law, Limits: limiter.Limits{RPM: 60}}})
	lanes := make([]string, count)
	for i := range lanes {
		lanes[i] = fmt.Sprintf("l%d", i)
	}
	m.Step(storyStart, RunOpened(1, RunConfig{Concurrency: 1000, Pools: []PoolConfig{{Name: "p", Lanes: lanes}}}))
	items := make([]*Item, n)
	for i := range items {
		items[i] = &Item{Seq: uint64(i), Pool: "p"}
	}
	m.Step(storyStart, Offered(1, items))
	return m
}

// pass decides, ends the calls that it grants, and returns their number and the next moment.
func pass(m *Machine, now time.Time) (granted int, next time.Time) {
	r := m.Ready(now)
	all := slices.Clone(r.Grants)
	for _, g := range all {
		m.Step(now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
	}
	if len(all) > 0 {
		return len(all), now
	}
	return 0, r.WakeAt
}

// BenchmarkManyLanes measures an item of a pool of a hundred lanes, each of which is paced.
func BenchmarkManyLanes(b *testing.B) {
	for _, law := range []limiter.LawName{limiter.Model, limiter.Plain} {
		b.Run(fmt.Sprintf("law=%v", law), func(b *testing.B) {
			m, now := manyLanes(law, 100, b.N), storyStart
			b.ReportAllocs()
			for b.ResetTimer(); m.Waiting() > 0; {
				_, now = pass(m, now)
			}
		})
	}
}

// Where many lanes of a pool are due at one moment, the pool asks each of them once, and once
// more for each call that leaves.
func TestLanesThatAreDueTogetherAreAskedOnce(t *testing.T) {
	const lanes = 100
	m, now := manyLanes(limiter.Model, lanes, 1000), storyStart
	for quiet := 0; m.Waiting() > 0; {
		before, granted := m.alarms.settings, 0
		if granted, now = pass(m, now); granted == 0 {
			quiet++
		}
		if set := int(m.alarms.settings - before); set > (1+granted)*lanes {
			t.Fatalf("%d alarms are set for %d lanes and %d calls", set, lanes, granted)
		}
		if m.Waiting() == 0 && quiet < 10 {
			t.Errorf("it waited %d times", quiet)
		}
	}
}
