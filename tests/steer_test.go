package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

// steered is a run that a thousand commands change, with what it may do at each moment.
type steered struct {
	*storm
	mu      sync.Mutex
	flying  int
	ceiling int
	paused  bool
	changed time.Time // the latest of both
	faults  int
}

// call makes a call, and finds fault with one that leaves although it may not.
func (s *steered) call(ctx context.Context, i int) (provider.Reply, error) {
	s.mu.Lock()
	if s.flying++; time.Now().After(s.changed) && (s.paused || s.flying > s.ceiling) {
		s.faults++
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying--
		s.mu.Unlock()
	}()
	return s.storm.call(ctx, i)
}

// command gives one command at random.
func (s *steered) command(ctx context.Context, ctl *batch.Control, rng *rand.Rand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch rng.IntN(8) {
	case 0:
		s.paused, s.changed = true, time.Now()
		return ctl.Pause(ctx)
	case 1, 2:
		s.paused, s.changed = false, time.Now()
		return ctl.Resume(ctx)
	case 3, 4:
		s.ceiling, s.changed = 1+rng.IntN(200), time.Now()
		return ctl.SetConcurrency(ctx, s.ceiling)
	case 5:
		return ctl.SetLimitsOfAll(ctx, limiter.Limits{RPM: float64(rng.IntN(2) * (2000 + rng.IntN(60_000)))})
	case 6:
		return ctl.SetMaxCost(ctx, 1000+rng.Float64()*1000)
	}
	_, err := ctl.Status(ctx, 3)
	return errors.Join(err, ctl.ResetLane(ctx, ""))
}

// A thousand commands at random in the middle of a storm: no call leaves that may not, each item is answered once, and
// the run goes to its end.
func TestThousandCommandsInAStorm(t *testing.T) {
	const items, commands = 20_000, 1000
	cfg := sim.Config{
		RPM: 30_000, Burst: time.Second, RetryAfter: sim.Sometimes, Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.5},
		Errors: sim.Rates{Server500: 0.02, Overloaded503: 0.001, Reset: 0.01}, Seed: 3,
	}
	inStorms(t, cfg, func(t *testing.T, storm *storm) {
		s, ctl, rng := &steered{storm: storm, ceiling: 64}, batch.NewControl(), rand.New(rand.NewPCG(3, 3))
		budget := batch.Budget[int]{
			Max:     1000,
			Reserve: func(int, string, float64) (float64, bool) { return 0.001, true },
			Cost:    func(int, string, provider.Usage) (float64, bool) { return 0.001, true },
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range commands {
				time.Sleep(time.Duration(rng.ExpFloat64() * float64(40*time.Millisecond)))
				if err := s.command(t.Context(), ctl, rng); err != nil {
					t.Error(err)
				}
			}
			s.mu.Lock()
			s.paused, s.changed = false, time.Now()
			s.mu.Unlock()
			_ = ctl.Resume(t.Context())
		}()
		results, sum, err := s.run(t.Context(), numbers(items), s.call, batch.WithControl(ctl), batch.WithConcurrency(64), batch.WithMostConcurrency(200),
			batch.WithMaxAttempts(50), batch.WithMaxCost(budget))
		<-over
		s.allAnswered(results, sum, err, items)
		s.once(items)
		if s.faults > 0 {
			t.Errorf("%d calls left although the run was paused, or as many as might be were in flight", s.faults)
		}
		if sum.Held[limiter.BoundPaused] == 0 {
			t.Error("no time was booked for a pause")
		}
	})
}
