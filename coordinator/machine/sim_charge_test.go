package machine

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Lanes that charge by rules of their own, know the periods of their headers, and have
// limits by the day.

// ownRules draws from a stream of its own, so that worlds that are known by their seed stay
// what they were in all else.
func (p *plan) ownRules() {
	rng := rand.New(rand.NewPCG(p.seed, 6))
	p.ownRule(rng, &p.machine.Lane)
	for i := range p.lanes {
		p.ownRule(rng, &p.lanes[i].config)
		p.ownDay(rng, &p.lanes[i].server)
	}
}

func (p *plan) ownRule(rng *rand.Rand, c *LaneConfig) {
	charged, timed := rng.IntN(2) == 0 && p.without&charges == 0, rng.IntN(3) == 0
	rule := chargeOf(rng)
	if charged {
		c.Charge = rule
	}
	if timed {
		c.AttemptTimeout = time.Duration(rng.IntN(60)) * time.Second
	}
	if rng.IntN(3) == 0 {
		c.Periods[0] = limiter.Period{On: limiter.Requests, Per: time.Minute}
	}
}

// chargeOf assumes so little output that a call by assumption fits a minute of each limit
// that a world tells: some hundred larger ones would take longer than a world may last.
func chargeOf(rng *rand.Rand) limiter.Charge {
	return limiter.Charge{
		Rule: limiter.ChargeRule(rng.IntN(5)), CachedFree: rng.IntN(2) == 0,
		OutputFactor: []float64{0, 0, 1, 5, 0.5}[rng.IntN(5)], Assumed: []float64{0, 300, 1000}[rng.IntN(3)],
	}
}

func (p *plan) ownDay(rng *rand.Rand, s *server) {
	day, left, whole := 1000+rng.IntN(20_000), 1+rng.IntN(100), time.Duration(rng.Int64N(int64(24*time.Hour)))
	if rng.IntN(8) == 0 && p.without&days == 0 {
		s.day, s.served, s.whole = day, day-left, whole // most of it is used when the world begins
	}
}

// ofDay reports whether there is a call left of the day's, and takes it.
func (s *server) ofDay() bool {
	if s.served >= s.day {
		return false
	}
	s.served++
	return true
}

// ofTheDay returns the sighting of that limit. It is whole again once, and from then on there
// is no end to it: a world that waits for the next day would not end.
func (s *server) ofTheDay(age time.Duration) limiter.Sighting {
	if age >= s.whole && s.served >= s.day {
		s.day = math.MaxInt32
	}
	return limiter.Sighting{
		Dimension: limiter.Requests, Limit: float64(s.day), Window: 24 * time.Hour,
		Remaining: float64(s.day - s.served), Reset: max(0, s.whole-age), HasReset: true,
	}
}

// mayBeUsedUp: a lane stops for a limit by the day only if its server has one, and nothing
// is left of it.
func (b *book) mayBeUsedUp(t Transition) {
	var used *UsedUpError
	if !errors.As(t.Cause, &used) {
		return
	}
	var w *WaitError
	if s := b.w.servers[t.Lane]; s.day == 0 || s.served < s.day || !errors.As(t.Cause, &w) || w.Wait <= w.Most {
		b.w.failf("%v: %d of %d were served, to wait %+v", t, s.served, s.day, w)
	}
}

// cached returns the part of an answer's input that was read from a cache.
func (w *world) cached(input float64) float64 {
	if w.hasty.IntN(2) == 0 {
		return 0
	}
	return math.Floor(input * w.hasty.Float64())
}

// checkCost recounts what the items of a pool draw.
func (m *Machine) checkCost(b *book, p *pool) {
	for _, l := range p.lanes {
		if was := b.lanes[l.name]; was != nil && was.charge != l.charge {
			b.w.failf("lane %s charges by %+v, and its law began with %+v", l.name, l.charge, was.charge)
		}
		if c, sum := p.costOn(l), p.sumCosts(l); !near(c, sum) {
			b.w.failf("pool %s: its items draw %+v on lane %s, counted %+v", p.name, c, l.name, sum)
		}
	}
}

func near(c, d limiter.Cost) bool {
	off := c.Minus(d)
	return math.Abs(off.Requests)+math.Abs(off.Input)+math.Abs(off.Output) < 1e-6
}
