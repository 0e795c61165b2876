package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

var errBusy = errors.New("busy")

// After a cooldown, calls leave at the rate of the ramp, however many workers wait. For 5
// and for 500 workers they leave at the very same instants, and in no tenth of a second do
// more leave than the ramp allows.
func TestRampBoundsWhatLeaves(t *testing.T) {
	const cool, initial, target, ramp = 10 * time.Second, 5.0, 20.0, 300 * time.Second
	watch := map[int][]time.Duration{}
	for _, workers := range []int{5, 500} {
		synctest.Test(t, func(t *testing.T) {
			var log departures
			begun := time.Now()
			fn := func(ctx context.Context, _ int) (int, error) {
				log.add()
				if time.Since(begun) < cool {
					<-time.After(time.Millisecond) // all that may leave are gone by then
					return 0, batch.RetryAfter(cool-time.Millisecond, errBusy)
				}
				return 0, nil
			}
			var sum batch.Summary
			lane := machine.LaneConfig{
				Law:      limiter.Plain,
				Cooldown: limiter.CooldownConfig{Jitter: -1},
				Ramp:     limiter.RampConfig{Initial: initial, Target: target, Duration: ramp},
			}
			_, err := batch.Run(t.Context(), numbers(2000), fn, batch.WithLaneDefaults(lane), batch.WithConcurrency(workers), batch.WithSummary(&sum))
			if err != nil || !sum.Proves() || sum.Counters.Cooldowns != 1 || int(sum.Counters.Participants) != workers {
				t.Fatalf("%v %+v", err, sum)
			}
			for _, at := range log.at[workers:] {
				watch[workers] = append(watch[workers], at.Sub(begun)-cool)
			}
		})
	}
	few, many := watch[5], watch[500]
	for i := range min(len(few), len(many)) {
		if few[i] != many[i] {
			t.Fatalf("call %d after the cooldown leaves at %v with 5 workers, at %v with 500", i, few[i], many[i])
		}
	}
	if few[0] != 0 {
		t.Errorf("the first call left %v after the cooldown", few[0])
	}
	for i, at := range few {
		if at >= ramp {
			break
		}
		end, _ := slices.BinarySearch(few, at+100*time.Millisecond)
		rate := initial + (target-initial)*min(1, (at+100*time.Millisecond).Seconds()/ramp.Seconds())
		// The probe leaves before the ramp begins, and the ramp's first call is free.
		free := 1.0
		if i == 0 {
			free = 2
		}
		if most := free + rate/10; float64(end-i) > most+1e-9 {
			t.Errorf("%d calls left within 100 ms of %v, at most %.2f may", end-i, at, most)
		}
	}
}

// Nothing leaves during a cooldown: not what was refused, not what waits, and not
// what comes out of its backoff meanwhile.
func TestNothingLeavesDuringACooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log departures
		begun := time.Now()
		fn := func(ctx context.Context, i int) (int, error) {
			switch n := log.add(); {
			case n <= 4:
				return 0, &provider.Error{Kind: provider.Server} // back within half a second
			case n == 5:
				<-time.After(10 * time.Millisecond) // the others are delayed by now
				return 0, batch.RetryAfter(10*time.Second, errBusy)
			}
			<-time.After(time.Second)
			return i, nil
		}
		var sum batch.Summary
		_, err := batch.Run(t.Context(), numbers(5), fn, exact, batch.WithConcurrency(5), batch.WithSummary(&sum))
		if err != nil || sum.Succeeded != 5 || sum.Counters.Delayed != 4 || sum.Counters.Cooldowns != 1 {
			t.Fatalf("%v %+v", err, sum)
		}
		for _, at := range log.at {
			if since := at.Sub(begun); since > 10*time.Millisecond && since < 10*time.Second+10*time.Millisecond {
				t.Errorf("a call left at %v", since)
			}
		}
	})
}

// When the balance is used up, no more follow than the calls in flight, and the
// run says so; the rest is not run and can be taken up later.
func TestQuotaExhaustedInTheMiddle(t *testing.T) {
	const items, quota, workers = 10_000, 500, 16
	cfg := sim.Config{QuotaAfter: quota, Latency: sim.Latency{Median: time.Second, Sigma: 0.5}}
	inStorm(t, cfg, func(t *testing.T, s *storm) {
		results, sum, err := s.run(t.Context(), numbers(items), s.call, batch.WithConcurrency(workers))
		var fault *provider.Error
		if !errors.Is(err, batch.ErrStopped) || !errors.As(err, &fault) || fault.Kind != provider.QuotaExhausted || fault.Kind.ExitCode() != 3 {
			t.Fatal(err)
		}
		b := s.server.Books()
		if follow := b.Received - quota; follow < 1 || follow > workers {
			t.Errorf("%d calls followed, with %d in flight", follow, workers)
		}
		if sum.Succeeded != quota || uint64(b.Received) != sum.Counters.Calls {
			t.Errorf("%+v\n%+v", sum, b)
		}
		for _, r := range results {
			if r.Err != nil && !errors.Is(r.Err, batch.ErrNotRun) {
				t.Errorf("item %d: %v", r.Index, r.Err)
			}
		}
		s.once(quota)
	})
}

// A healthy lane runs at full speed while another cools.
func TestCooledLaneBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, last := time.Now(), time.Duration(0)
		var log departures
		fn := func(ctx context.Context, i int) (int, error) {
			if batch.LaneFrom(ctx) == "ill" {
				if log.add() == 1 {
					return 0, batch.RetryAfter(10*time.Minute, errBusy)
				}
				return i, nil
			}
			<-time.After(time.Second)
			return i, nil
		}
		pool := batch.WithPoolOf(func(i int) string {
			if i == 0 {
				return "ill"
			}
			return "well"
		})
		for r, err := range batch.Stream(t.Context(), numbers(1001), fn, exact, pool, batch.WithConcurrency(10)) {
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if r.Pool == "well" {
				last = time.Since(begun)
			}
		}
		// Ten at a time but for the instant in which the other had a worker.
		if last > 101*time.Second || time.Since(begun) < 10*time.Minute {
			t.Errorf("the healthy lane took %v, all took %v", last, time.Since(begun))
		}
	})
}

// A minute's outage costs a few dozen calls, and full speed is back soon after.
func TestOutageOfAMinute(t *testing.T) {
	for _, mode := range []sim.OutageMode{sim.Outage503, sim.OutageReset} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			const items, workers = 3000, 32
			cfg := sim.Config{
				Latency: sim.Latency{Median: time.Second},
				Outages: []sim.Outage{{From: 20 * time.Second, For: time.Minute, Mode: mode}},
			}
			inStorm(t, cfg, func(t *testing.T, s *storm) {
				results, sum, err := s.run(t.Context(), numbers(items), s.call, batch.WithConcurrency(workers))
				s.allAnswered(results, sum, err, items)
				s.agrees(sum, 0)
				wasted := sum.Counters.HandedOver
				// The calls under way, those that took their places until the row was as long
				// as the calls under way, and the probes.
				if wasted > 2*workers+16 {
					t.Errorf("%d calls were wasted", wasted)
				}
				// Without the outage it takes items/workers seconds. The outage, the last wait
				// in it and the ramp are all that may be added.
				if most := items/workers*time.Second + time.Minute + 60*time.Second; sum.Elapsed > most {
					t.Errorf("it took %v, want at most %v", sum.Elapsed, most)
				}
			})
		})
	}
}
