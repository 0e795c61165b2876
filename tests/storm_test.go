package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// twoHundred is a provider that lets 200 requests through at once, then 200 a
// second, and names the wait when it refuses.
func twoHundred() sim.Config {
	return sim.Config{RPM: 12_000, Burst: time.Second, RetryAfter: sim.Always, Latency: sim.Latency{Median: 500 * time.Millisecond}}
}

// However many of 200 workers are refused at once, there is one cooldown, in which
// all of them take part; each refused item is called once more and no other is;
// and afterwards all 200 workers are at work again.
func TestOneWaveIsOneCooldown(t *testing.T) {
	const workers, items = 200, 700
	for _, refused := range []int{1, 2, 10, 200} {
		t.Run(fmt.Sprint(refused, " refused"), func(t *testing.T) {
			inStorm(t, twoHundred(), func(t *testing.T, s *storm) {
				s.neighbour(refused)
				all := newBarrier(workers)
				fn := func(ctx context.Context, i int) (provider.Reply, error) {
					if i >= items-workers {
						if err := all.arrive(ctx); err != nil {
							return provider.Reply{}, err
						}
					}
					return s.call(ctx, i)
				}
				results, sum, err := s.run(t.Context(), numbers(items), fn, exact, batch.WithConcurrency(workers))
				s.allAnswered(results, sum, err, items)
				n := sum.Counters
				if n.Cooldowns != 1 || int(n.Participants) != refused || int(n.Throttled) != refused || int(n.Redistributed) != refused || n.Calls != items+n.HandedOver || int(n.HandedOver) != refused {
					t.Errorf("want one cooldown with %d participants: %+v", refused, n)
				}
				s.agrees(sum, refused)
			})
		})
	}
}

// One worker that is refused comes back as many times as it takes.
func TestOneWorkerIsRefused(t *testing.T) {
	inStorms(t, sim.Config{RPM: 60, Burst: time.Second, RetryAfter: sim.Always}, func(t *testing.T, s *storm) {
		results, sum, err := s.run(t.Context(), numbers(30), s.call, batch.WithConcurrency(1))
		s.allAnswered(results, sum, err, 30)
		s.agrees(sum, 0)
		if n := sum.Counters; n.Cooldowns == 0 || n.Participants != n.Cooldowns {
			t.Errorf("%+v", n)
		}
	})
}

// A hundred items, twenty workers, half of them refused.
func TestHalfOfTwentyAreRefused(t *testing.T) {
	cfg := sim.Config{RPM: 1200, Burst: time.Second, RetryAfter: sim.Always, Latency: sim.Latency{Median: 200 * time.Millisecond}}
	inStorms(t, cfg, func(t *testing.T, s *storm) {
		s.neighbour(10)
		results, sum, err := s.run(t.Context(), numbers(100), s.call, batch.WithConcurrency(20))
		s.allAnswered(results, sum, err, 100)
		s.agrees(sum, 10)
		if n := sum.Counters; n.Throttled < 10 || n.Participants < 2 {
			t.Errorf("%+v", n)
		}
	})
}

// Wave after wave, from a provider that names no wait and lets far less through
// than is asked: all is answered in the end, and no wave starts two cooldowns.
func TestCascadeOfWaves(t *testing.T) {
	for seed := range uint64(3) {
		cfg := sim.Config{RPM: 120, Burst: 2 * time.Second, Latency: sim.Latency{Median: time.Second, Sigma: 0.4}, Seed: seed}
		inStorms(t, cfg, func(t *testing.T, s *storm) {
			results, sum, err := s.run(t.Context(), numbers(500), s.call, batch.WithConcurrency(100), batch.WithSeed(seed))
			s.allAnswered(results, sum, err, 500)
			s.agrees(sum, 0)
			n := sum.Counters
			if n.Cooldowns < 3 || n.Participants > n.Throttled {
				t.Errorf("seed %d: %+v", seed, n)
			}
			if sum.Elapsed > 3*500/2*time.Second {
				t.Errorf("seed %d: 500 items at 2 a second took %v", seed, sum.Elapsed)
			}
		})
	}
}

// Twenty thousand items through everything at once: refusals, server faults,
// resets, calls that hang, bodies cut short, and a run that is cancelled again and
// again at random instants and taken up with what was not run. Each item is
// answered exactly once.
func TestTwentyThousandThroughEverything(t *testing.T) {
	const items = 20_000
	cfg := sim.Config{
		RPM: 30_000, Burst: time.Second, RetryAfter: sim.Sometimes,
		Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.5},
		Errors:  sim.Rates{Server500: 0.04, Overloaded503: 0.001, Reset: 0.02, Hang: 0.002, Truncated: 0.01, Malformed200: 0.01},
		Seed:    7,
	}
	inStorms(t, cfg, func(t *testing.T, s *storm) {
		rng := rand.New(rand.NewPCG(7, 7))
		left := slices.Collect(numbers(items))
		var total batch.Counters
		runs, answers := 0, 0
		for ; len(left) > 0; runs++ {
			ctx, cancel := context.WithCancel(t.Context())
			if runs < 6 {
				time.AfterFunc(time.Duration(rng.Int64N(int64(10*time.Second))), cancel)
			}
			results, sum, err := s.run(ctx, slices.Values(left), s.call,
				batch.WithConcurrency(256), batch.WithAttemptTimeout(20*time.Second), batch.WithMaxAttempts(10), batch.WithSeed(uint64(runs)))
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			again := slices.Clone(left[len(results):])
			for _, r := range results {
				switch {
				case errors.Is(r.Err, batch.ErrNotRun):
					again = append(again, r.Item)
				case r.Err != nil:
					t.Fatalf("item %d: %v", r.Item, r.Err)
				default:
					s.answered(r)
					answers++
				}
			}
			left = again
			total.Calls += sum.Counters.Calls
			total.Throttled += sum.Counters.Throttled
			total.Cooldowns += sum.Counters.Cooldowns
		}
		b := s.server.Books()
		t.Logf("%d runs, %d calls, %d cooldowns, %d refused, faults %v, %d abandoned", runs, total.Calls, total.Cooldowns, b.Refused429, b.Errors, b.Abandoned)
		if runs < 5 || answers != items || b.Abandoned == 0 || total.Cooldowns == 0 || b.Refused429 == 0 {
			t.Errorf("%d answers in %d runs", answers, runs)
		}
		// A call whose run was cancelled as it left is ours alone; none is theirs alone.
		if slack := total.Calls - uint64(b.Received); slack > 256*6 || b.Accepted-b.Abandoned != answers {
			t.Errorf("we made %d calls and got %d answers; %+v", total.Calls, answers, b)
		}
		s.once(items)
	})
}

// The same over real sockets, with the client that users have: the books of both
// sides agree.
func TestStormOverSockets(t *testing.T) {
	const items, workers = 3000, 64
	server := sim.New(sim.Config{
		RPM: 180_000, Burst: 100 * time.Millisecond, RetryAfter: sim.Always, RetryAfterMS: true, Headers: true,
		Latency: sim.Latency{Median: 2 * time.Millisecond, Sigma: 0.3}, Refusal: time.Millisecond,
		Errors: sim.Rates{Server500: 0.01, Reset: 0.01}, TrackIDs: true, Seed: 3,
	}, clockwork.NewRealClock())
	web := httptest.NewServer(server)
	defer web.Close()
	s := newStorm(t, server, openai.Config{BaseURL: web.URL + "/v1", Conns: workers})
	defer s.client.CloseIdle()
	results, sum, err := s.run(t.Context(), numbers(items), s.call, batch.WithConcurrency(workers), batch.WithRamp(500, 3000, 300*time.Millisecond))
	s.allAnswered(results, sum, err, items)
	s.agrees(sum, 0)
	t.Logf("%v: %+v", sum.Elapsed, sum.Counters)
}
