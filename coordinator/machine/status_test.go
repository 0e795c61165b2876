package machine

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/model"
)

// A bed is a machine with one open run, and what it granted.
type bed struct {
	*Machine
	now   time.Time
	seq   uint64
	calls []Grant
	said  []Transition
}

func newBed(c LaneConfig, r RunConfig) *bed {
	c.Cooldown.Jitter = -1
	b := &bed{Machine: New(Config{Lane: c}), now: storyStart}
	b.Step(b.now, RunOpened(1, r))
	return b
}

// offer offers n items to a pool and decides.
func (b *bed) offer(n int, pool string, tokens float64) {
	for range n {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: pool, Cost: limiter.Cost{Input: tokens}}}))
		b.seq++
	}
	b.decide()
}

func (b *bed) decide() Ready {
	ready := b.Ready(b.now)
	b.calls = append(b.calls, ready.Grants...)
	b.said = append(b.said, ready.Transitions...)
	return ready
}

// end hands the oldest call over, after so long.
func (b *bed) end(after time.Duration, o Outcome) {
	b.now = b.now.Add(after)
	g := b.calls[0]
	b.calls = b.calls[1:]
	o.Latency = after
	b.Step(b.now, HandedOver(g, o))
	b.decide()
}

func (b *bed) wait(d time.Duration) {
	b.now = b.now.Add(d)
	b.decide()
}

// The picture of a lane says in three words what holds it back, what the next call
// waits for, and how long.
func TestStatusSaysWhatHoldsALaneBack(t *testing.T) {
	refused, exhausted := Outcome{Signal: Throttled}, Outcome{Signal: Exhausted, Cause: errors.New("no money")}
	for _, c := range []struct {
		name  string
		lane  LaneConfig
		do    func(*bed)
		speed Speed
		why   string
		wait  time.Duration
	}{
		{"nothing", LaneConfig{Law: limiter.Plain}, func(b *bed) { b.offer(3, "", 0) }, FullSpeed, "", 0},
		{"requests", LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60}}, func(b *bed) { b.offer(2, "", 0) }, ClientThrottled, "requests", time.Second},
		{"tokens of the item whose turn it is", LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{TPM: 6000, Burst: 50 * time.Second}}, func(b *bed) { b.offer(1, "", 4000); b.offer(1, "", 2000) }, ClientThrottled, "tokens", 10 * time.Second},
		{"window", LaneConfig{Law: limiter.Plain, Window: 1}, func(b *bed) { b.offer(2, "", 0) }, ClientThrottled, "window", 0},
		{"rate", LaneConfig{Law: limiter.Plain, Rate: limiter.RateConfig{Initial: 0.5}}, func(b *bed) { b.offer(1, "", 0) }, ClientThrottled, "rate", 2 * time.Second},
		{"cooling", LaneConfig{Law: limiter.Plain}, func(b *bed) { b.offer(1, "", 0); b.end(time.Second, refused) }, ServerThrottled, "throttled", time.Second},
		{"probing", LaneConfig{Law: limiter.Plain}, func(b *bed) { b.offer(1, "", 0); b.end(time.Second, refused); b.wait(time.Second) }, ServerThrottled, "probe", 0},
		{"stopped", LaneConfig{Law: limiter.Plain}, func(b *bed) { b.offer(1, "", 0); b.end(time.Second, exhausted) }, ServerThrottled, "refused for good", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(c.lane, RunConfig{})
			c.do(b)
			l := b.Status(b.now, 1).Lanes[0]
			if l.Speed != c.speed || l.Why != c.why || l.Wait != c.wait {
				t.Errorf("%v (%s, %v), want %v (%s, %v)", l.Speed, l.Why, l.Wait, c.speed, c.why, c.wait)
			}
		})
	}
}

// The wait that a picture shows is the whole one, under either law, though a law may want to be
// asked again before that.
func TestStatusShowsTheWholeWait(t *testing.T) {
	limits := limiter.Limits{RPM: 1}
	for law, c := range map[string]LaneConfig{
		"plain": {Law: limiter.Plain, Limits: limits}, "model": {Law: limiter.Model, Limits: limits},
		"embeds model": {Limits: limits, Maker: embeddingMaker{}},
	} {
		b := newBed(c, RunConfig{})
		b.offer(2, "", 0)
		said := b.Status(b.now, 1).Lanes[0].Wait
		var took time.Duration
		for ; len(b.calls) < 2 && took < time.Hour; took += time.Second / 10 {
			b.wait(time.Second / 10)
		}
		if took < time.Minute || (said-took).Abs() > time.Second/2 {
			t.Errorf("law %v: %v, and it took %v", law, said, took)
		}
	}
}

// embeddingMaker makes laws of another package that embed the model law.
type embeddingMaker struct{}

func (embeddingMaker) NewLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	c.Law = limiter.Model
	return struct{ *model.Law }{model.New(c, now, rng)}
}

// A picture shows the busiest lanes, busiest first, and says how many there are; it
// changes nothing.
func TestStatusShowsTheBusiestLanes(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(1, "a", 0)
	b.offer(3, "b", 0)
	b.offer(2, "c", 0)
	for range 2 {
		s := b.Status(b.now, 2)
		if len(s.Lanes) != 2 || s.Lanes[0].Name != "b" || s.Lanes[1].Name != "c" || s.Known != 3 {
			t.Fatalf("lanes %+v of %d", s.Lanes, s.Known)
		}
		if s.Totals.Calls != 6 || s.Lanes[0].InFlight != 3 || s.Held != 0 {
			t.Errorf("%d calls, %d in flight on b, %d held; want 6, 3, 0", s.Totals.Calls, s.Lanes[0].InFlight, s.Held)
		}
	}
	if got := len(b.Status(b.now, math.MaxInt).Lanes); got != 3 {
		t.Errorf("%d lanes in a picture of all, want 3", got)
	}
	if got := len(b.Status(b.now, -1).Lanes); got != 0 {
		t.Errorf("%d lanes in a picture of none", got)
	}
}

// The allowed rate is the least of the told, the learned and the climbed rate; nothing while
// the lane cools.
func TestStatusRate(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 120}}, RunConfig{})
	b.offer(1, "", 0)
	if got := b.Status(b.now, 1).Lanes[0].Rate; got != 2 {
		t.Errorf("told 120 a minute, allowed %v a second", got)
	}
	b.end(time.Second, Outcome{Signal: Throttled})
	if got := b.Status(b.now, 1).Lanes[0].Rate; got != 0 {
		t.Errorf("cooling, allowed %v a second", got)
	}
	if got := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{}); !math.IsInf(func() float64 { got.offer(1, "", 0); return got.Status(got.now, 1).Lanes[0].Rate }(), 1) {
		t.Error("nothing is known, and yet something limits")
	}
}

// What cannot be meant is refused before anything is run with it.
func TestConfigsAreValidated(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"negative window", LaneConfig{Law: limiter.Plain, Window: -1}.Validate()},
		{"negative limit", LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: -1}}.Validate()},
		{"negative cooldown", LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Base: -1}}.Validate()},
		{"negative concurrency", RunConfig{Concurrency: -1}.Validate()},
		{"too much concurrency", RunConfig{Concurrency: MaxConcurrency + 1}.Validate()},
		{"negative timeout", RunConfig{ItemTimeout: -1}.Validate()},
		{"pool without a lane", RunConfig{Pools: []PoolConfig{{Name: "a"}}}.Validate()},
		{"lane twice in a pool", RunConfig{Pools: []PoolConfig{{Name: "a", Lanes: []string{"x", "x"}}}}.Validate()},
		{"pool twice", RunConfig{Pools: []PoolConfig{{Name: "a", Lanes: []string{"x"}}, {Name: "a", Lanes: []string{"y"}}}}.Validate()},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	if err := errors.Join(LaneConfig{Law: limiter.Plain}.Validate(), RunConfig{}.Validate()); err != nil {
		t.Errorf("zero values: %v", err)
	}
}

// A picture counts the lanes whose breaker is open apart from those that are half-open,
// and says of each how many calls broke in a row and when its items may go again.
func TestStatusTellsBreakersApart(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{TPM: 6000, Burst: time.Minute}, Breaker: limiter.BreakerConfig{Consecutive: 2, OpenFor: 10 * time.Second}}, RunConfig{})
	broken := Outcome{Signal: Failed, Directed: true, RetryAfter: time.Minute}
	check := func(when string, open, halfOpen int, state limiter.BreakerState, failures int) LaneStatus {
		t.Helper()
		s := b.Status(b.now, 1)
		l := s.Lanes[0]
		if s.Open != open || s.HalfOpen != halfOpen || l.Breaker != state || l.Failures != failures {
			t.Errorf("%s: %d open, %d half-open; %v, %d in a row", when, s.Open, s.HalfOpen, l.Breaker, l.Failures)
		}
		return l
	}
	b.offer(1, "", 0)
	b.offer(1, "", 6500)
	b.end(time.Second, broken)
	first := b.now.Add(time.Minute)
	check("one failure", 0, 0, limiter.Closed, 1)
	b.end(time.Second, broken)
	l := check("two", 1, 0, limiter.Open, 2)
	if l.Delayed != 2 || l.FirstDue != first || l.LastDue != first.Add(time.Second) {
		t.Errorf("%d delayed, due from %v to %v", l.Delayed, l.FirstDue.Sub(b.now), l.LastDue.Sub(b.now))
	}
	if l.Level.Tokens >= 0 || !math.IsInf(l.Level.Requests, 1) {
		t.Errorf("levels %+v, want a debt of tokens", l.Level)
	}
	b.wait(10 * time.Second)
	check("the interval is over", 0, 1, limiter.HalfOpen, 2)
	b.offer(1, "", 0)
	b.end(0, broken)
	check("the probe broke", 1, 0, limiter.Open, 3)
	b.wait(15 * time.Second)
	b.offer(1, "", 0)
	b.end(0, Outcome{Signal: Succeeded})
	if l := check("a probe was answered", 0, 0, limiter.Closed, 0); l.FirstDue.IsZero() {
		t.Error("nobody is due, and two are delayed")
	}
}

// The busiest lane is the one with the most to do: in flight, parked and delayed together.
func TestBusiestLaneComesFirst(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	for pool, n := range map[string]int{"calls": 2, "waits": 3, "rests": 1} {
		b.offer(n, pool, 0)
	}
	for _, g := range append([]Grant(nil), b.calls...) {
		if g.Lane == "waits" {
			b.Step(b.now, HandedOver(g, Outcome{Signal: Failed}))
		}
	}
	lanes := b.Status(b.now, 3).Lanes
	if lanes[0].Name != "waits" || lanes[0].Delayed != 3 || lanes[1].Name != "calls" || lanes[2].Name != "rests" {
		t.Errorf("%s (%d delayed), %s, %s", lanes[0].Name, lanes[0].Delayed, lanes[1].Name, lanes[2].Name)
	}
}

// A run sees its own lanes only, and all of them.
func TestStatusOfShowsTheLanesOfItsRun(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(1, "mine", 0)
	b.offer(1, "both", 0)
	b.Step(b.now, RunOpened(2, RunConfig{}))
	for _, pool := range []string{"both", "theirs"} {
		b.Step(b.now, Offered(2, []*Item{{Pool: pool}}))
	}
	b.decide()
	for run, want := range map[RunID][]string{1: {"both", "mine"}, 2: {"both", "theirs"}} {
		var names []string
		for _, l := range b.StatusOf(b.now, 10, run).Lanes {
			names = append(names, l.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("run %d sees %q, want %q", run, names, want)
		}
	}
}
