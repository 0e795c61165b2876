package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// What an item costs the owner from offer to end: the machine's share of a call.
// The aim is 300 ns and one allocation (the slice and the item of the caller are
// made outside).
func BenchmarkMachine(b *testing.B) {
	told := limiter.Limits{RPM: 1e9, TPM: 1e12}
	for _, c := range []struct {
		name  string
		lanes int
		lane  LaneConfig
	}{
		{"lanes=1", 1, LaneConfig{}},
		{"lanes=1/limits=told", 1, LaneConfig{Limits: told}},
		{"lanes=1000", 1000, LaneConfig{}},
		{"lanes=1000/limits=told", 1000, LaneConfig{Limits: told}},
		{"lanes=10000", 10000, LaneConfig{}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmark(b, c.lanes, c.lane) })
	}
}

// benchmark keeps a window of calls in flight: each pass settles 64 and grants 64.
func benchmark(b *testing.B, lanes int, c LaneConfig) {
	m, now := New(Config{Lane: c}), storyStart
	m.Step(now, RunOpened(1, RunConfig{Concurrency: 64}))
	names := make([]string, lanes)
	for i := range names {
		names[i] = fmt.Sprintf("lane%d", i)
	}
	items := make([]Item, b.N)
	for i := range items {
		items[i] = Item{Seq: uint64(i), Pool: names[i%lanes], Cost: limiter.Cost{Requests: 1, Input: 100}}
	}
	batch := make([]*Item, 0, 64)
	grants := make([]Grant, 0, 64)
	good := Outcome{Signal: Succeeded, Latency: time.Second}
	b.ReportAllocs()
	b.ResetTimer()
	for next := 0; next < b.N; {
		batch = batch[:0]
		for len(batch) < cap(batch) && next < b.N {
			batch = append(batch, &items[next])
			next++
		}
		now = now.Add(time.Millisecond)
		m.Step(now, Offered(1, batch))
		grants = append(grants[:0], m.Ready(now).Grants...)
		for _, g := range grants {
			m.Step(now, Settled(g, good))
		}
		m.Ready(now)
	}
	b.StopTimer()
	if c := m.totals.counters(); c.Settled != uint64(b.N) {
		b.Fatalf("%d of %d settled", c.Settled, b.N)
	}
}

// What a burst of refusals costs: park and give out again.
func BenchmarkRefused(b *testing.B) {
	m, now := New(Config{}), storyStart
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
