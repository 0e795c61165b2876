package tests

import (
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider/sim"
)

// Nobody has to tell the limit where headers do: the run keeps to it from the first
// answer on, without a single refusal, and takes hardly longer than it must.
func TestHeadersAreFollowed(t *testing.T) {
	const items = 2000
	cfg := sim.Config{RPM: 600, Headers: true, Latency: sim.Latency{Median: time.Second, Sigma: 0.4}}
	inStorm(t, cfg, func(t *testing.T, s *storm) {
		var sum batch.Summary
		results, err := batch.Run(t.Context(), numbers(items), s.call, batch.WithConcurrency(200), batch.WithSummary(&sum))
		s.allAnswered(results, sum, err, items)
		s.agrees(sum, 0)
		if sum.Counters.Throttled > 0 {
			t.Errorf("%d calls were refused", sum.Counters.Throttled)
		}
		// A minute's worth is there at once, the rest at ten a second; the last answer
		// and the slow start are what may be added.
		if most := 153 * time.Second; sum.Elapsed > most {
			t.Errorf("it took %v, want at most %v", sum.Elapsed, most)
		}
	})
}

// A provider that says nothing of its limit is found out by a hundred refusals or so, most
// of them the wave that ends the search of a bucket which holds a minute's worth.
func TestSilentLimitIsLearned(t *testing.T) {
	const items = 2000
	cfg := sim.Config{RPM: 600, Terse: true, Latency: sim.Latency{Median: time.Second, Sigma: 0.4}}
	inStorm(t, cfg, func(t *testing.T, s *storm) {
		var sum batch.Summary
		results, err := batch.Run(t.Context(), numbers(items), s.call, batch.WithConcurrency(200), batch.WithSummary(&sum))
		s.allAnswered(results, sum, err, items)
		s.agrees(sum, 0)
		if n := sum.Counters.Throttled; n == 0 || n > 150 {
			t.Errorf("%d calls were refused", n)
		}
		if most := 160 * time.Second; sum.Elapsed > most {
			t.Errorf("it took %v, want at most %v", sum.Elapsed, most)
		}
	})
}
