package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/model"
)

var (
	steep  = limiter.RampConfig{Initial: 1, Target: 11, Duration: 10 * time.Second}
	gentle = limiter.RampConfig{Initial: 1, Target: 3, Duration: 20 * time.Second}
)

// climbing is a lane in a steep ramp that began so long ago.
func climbing(since time.Duration) *bed {
	b := newBed(LaneConfig{Law: limiter.Plain, Ramp: steep}, RunConfig{})
	b.offer(1, "", 0)
	b.end(0, Outcome{Signal: Throttled})
	b.wait(time.Second) // the default of a first cooldown
	b.end(0, Outcome{Signal: Succeeded})
	b.wait(since)
	return b
}

// redefined is the lane's config with the changes that f makes.
func (b *bed) redefined(f func(*LaneConfig)) {
	c := *b.laneConfig(DefaultPool)
	f(&c)
	b.Step(b.now, LaneDefined(DefaultPool, c))
	b.decide()
}

// A lane that is defined anew climbs in the new shape: at once if it is climbing, from
// where it would be by now, and next time if it is not.
func TestDefinedLaneTakesOverTheRamp(t *testing.T) {
	b := climbing(5 * time.Second)
	if l := b.lane(); l.Phase != Ramping || l.Rate != 6 || l.Until.Sub(b.now) != 5*time.Second {
		t.Fatalf("%v at %v/s for %v", l.Phase, l.Rate, l.Until.Sub(b.now))
	}
	b.redefined(func(c *LaneConfig) { c.Ramp = gentle })
	if l := b.lane(); l.Phase != Ramping || l.Rate != 1.5 || l.Until.Sub(b.now) != 15*time.Second {
		t.Errorf("%v at %v/s for %v, want ramping at 1.5/s for 15s", l.Phase, l.Rate, l.Until.Sub(b.now))
	}
	b.wait(15 * time.Second)
	if l := b.lane(); l.Phase != Flowing {
		t.Errorf("%v after the end of the new ramp", l.Phase)
	}
	b.redefined(func(c *LaneConfig) { c.Ramp = steep })
	if l := b.lane(); l.Phase != Flowing || l.Epoch != 1 {
		t.Errorf("%v in epoch %d: no climb is under way", l.Phase, l.Epoch)
	}
	b.offer(1, "", 0)
	b.calls = b.calls[len(b.calls)-1:]
	b.end(0, Outcome{Signal: Throttled})
	b.wait(time.Second)
	b.end(0, Outcome{Signal: Succeeded})
	if l := b.lane(); l.Phase != Ramping || l.Until.Sub(b.now) != 10*time.Second {
		t.Errorf("%v for %v, want ramping for 10s", l.Phase, l.Until.Sub(b.now))
	}
}

// A ramp that would be over by now in its new shape is over.
func TestShorterRampIsOver(t *testing.T) {
	b := climbing(5 * time.Second)
	b.redefined(func(c *LaneConfig) { c.Ramp.Duration = 4 * time.Second })
	if l := b.lane(); l.Phase != Flowing {
		t.Errorf("%v for %v", l.Phase, l.Until.Sub(b.now))
	}
}

// Limits and window hold at once, and what was learned stays: nothing is old news.
func TestDefinedLaneKeepsWhatItLearned(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(5, "", 100)
	law := b.lanes[DefaultPool].law
	b.redefined(func(c *LaneConfig) { c.Window, c.Limits.TPM = 5, 6000 })
	b.offer(1, "", 100)
	if l := b.lane(); len(b.calls) != 5 || l.Why != "window" || l.Level.Tokens != 100 || l.Epoch != 0 || b.lanes[DefaultPool].law != law {
		t.Errorf("%d calls, %+v", len(b.calls), l)
	}
}

// A lane that is to follow another law begins afresh by it; what holds it back stays.
func TestChangedLawBeginsAfresh(t *testing.T) {
	refused, exhausted := Outcome{Signal: Throttled, Directed: true, RetryAfter: 20 * time.Second}, Outcome{Signal: Exhausted, Cause: errors.New("no money")}
	var broken []Outcome
	for range limiter.DefaultBreakerConsecutive {
		broken = append(broken, Outcome{Signal: Failed})
	}
	for name, c := range map[string]struct {
		ends  []Outcome
		wait  time.Duration
		phase Phase
		why   Reason
		left  time.Duration // of what holds it back
		epoch uint64
	}{
		"flowing":      {nil, 0, Flowing, NoReason, 0, 1},
		"cooling":      {[]Outcome{refused}, 5 * time.Second, Cooling, ByThrottle, 15 * time.Second, 2},
		"breaker open": {broken, time.Second, Cooling, ByBreaker, 3 * time.Second, 2},
		"probing":      {[]Outcome{refused}, 25 * time.Second, Probing, ByTime, 0, 2},
		"stopped":      {[]Outcome{exhausted}, 0, Stopped, ByRefusal, 0, 2},
	} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(20, "", 0)
		for _, o := range c.ends {
			b.end(0, o)
		}
		b.wait(c.wait)
		law := b.lanes[DefaultPool].law
		b.lanes[DefaultPool].slowed = 0.5 // by that law
		b.redefined(func(c *LaneConfig) { c.Law = limiter.Model })
		l, is := b.lanes[DefaultPool], b.lane()
		if is.Phase != c.phase && c.phase != Flowing || l.reason != c.why && c.phase != Flowing || max(0, is.Until.Sub(b.now)) != c.left && c.phase == Cooling || is.Epoch != c.epoch {
			t.Errorf("%s: %v (%v) for %v in epoch %d", name, is.Phase, is.Reason, is.Until.Sub(b.now), is.Epoch)
		}
		if _, model := l.law.(*model.Law); !model || l.law == law || l.slowed > 0 {
			t.Errorf("%s: it follows %T", name, l.law)
		}
	}
}

// A probe that is out when the law changes is the old law's: another one goes.
func TestChangedLawSendsAProbeOfItsOwn(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{})
	b.offer(1, "", 0)
	first := b.calls[0]
	b.end(0, Outcome{Signal: Failed})
	b.offer(2, "", 0)
	b.wait(limiter.DefaultBreakerOpenFor)
	probe := b.calls[len(b.calls)-1]
	if l := b.lane(); l.Phase != Probing || !probe.Item.Probe || probe.Serial == first.Serial {
		t.Fatalf("%v, the latest call is a probe: %v", l.Phase, probe.Item.Probe)
	}
	b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{}))
	if breaker := b.lanes[DefaultPool].breaker; !breaker.Allow(b.now) {
		t.Error("the old law's probe still has the breaker's permit")
	}
	b.decide()
	second := b.calls[len(b.calls)-1]
	if second.Item == probe.Item || !second.Item.Probe {
		t.Fatalf("no second probe: %v", second)
	}
	b.Step(b.now, Settled(probe, Outcome{Signal: Succeeded}))
	b.decide()
	if l := b.lane(); l.Phase != Probing {
		t.Errorf("the old law's probe has made the lane %v", l.Phase)
	}
	b.Step(b.now, Settled(second, Outcome{Signal: Succeeded}))
	b.decide()
	if l := b.lane(); l.Phase == Probing {
		t.Error("the new law's probe was answered, and the lane is still probed")
	}
}

// A lane that climbs when its law changes climbs by the new one.
func TestChangedLawClimbs(t *testing.T) {
	b := climbing(5 * time.Second)
	b.redefined(func(c *LaneConfig) { c.Law = limiter.Model })
	if l := b.lane(); l.Phase != Flowing {
		t.Errorf("the model has no ramp, and the lane is %v", l.Phase)
	}
}

// That a server is one's own, which queues, is another way to judge it.
func TestChangedLocalBeginsAfresh(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	law := b.lanes[DefaultPool].law
	b.redefined(func(c *LaneConfig) { c.Local = true })
	if l := b.lanes[DefaultPool]; l.law == law || l.law.Window(b.now) == law.Window(b.now) || l.epoch != 1 {
		t.Errorf("window %d in epoch %d", l.law.Window(b.now), l.epoch)
	}
}
