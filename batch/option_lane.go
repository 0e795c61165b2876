package batch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Options about lanes, and about what watches over all of them. With several runs on one
// coordinator they are said where it is made, by [NewShared].

// laneWords are what options say of the lanes that no WithLane names. They are kept as
// they were said until all have been heard, so that their order does not matter.
type laneWords struct {
	defaults LaneConfig     // WithLaneDefaults
	limits   *Limits        // WithLimits; nil: it was not given, like those below
	ramp     *RampConfig    // WithRamp
	local    *time.Duration // WithLocalServer
	plain    bool           // WithPlainLaw
	latency  time.Duration  // WithLatencyTarget; 0 says nothing
	charge   Charge         // WithCharge, likewise; WithLaneDefaults may know better
	periods  Periods        // WithPeriods, likewise
}

// compose is what the words add up to.
func (w laneWords) compose(attemptTimeout time.Duration) (LaneConfig, error) {
	c := w.defaults
	if w.limits != nil {
		c.Limits = *w.limits
	}
	if w.plain {
		c.Law = limiter.Plain
	}
	if w.ramp != nil {
		c.Law, c.Ramp = limiter.Plain, *w.ramp
	}
	c.Target = cmp.Or(w.latency, c.Target)
	c.Charge, c.Periods = cmp.Or(c.Charge, w.charge), cmp.Or(c.Periods, w.periods)
	if w.local != nil {
		c.Local, c.Target = true, cmp.Or(*w.local, c.Target, limiter.LocalTarget(cmp.Or(c.AttemptTimeout, attemptTimeout)))
	}
	return c, w.contradictions()
}

// contradictions are what cannot be meant, alone or together. That two options say the
// same is none.
func (w laneWords) contradictions() error {
	d := w.defaults
	var shape error
	if w.ramp != nil {
		shape = w.ramp.Validate()
	}
	return errors.Join(
		said("WithRamp", shape),
		atOdds("WithLimits", "WithLaneDefaults", w.limits != nil && d.Limits != Limits{} && d.Limits != *w.limits),
		atOdds("WithRamp", "WithLaneDefaults", w.ramp != nil && (d.Local || d.Law == limiter.NoLaw || d.Ramp != RampConfig{} && d.Ramp != *w.ramp)),
		atOdds("WithPlainLaw", "WithLaneDefaults", w.plain && (d.Local || d.Law == limiter.NoLaw)),
		atOdds("WithLocalServer", "WithLaneDefaults", w.local != nil && (d.Law != limiter.Model || !mayBoth(*w.local, d.Target))),
		atOdds("WithLatencyTarget", "WithLaneDefaults", !mayBoth(w.latency, d.Target)),
		atOdds("WithLatencyTarget", "WithLocalServer", w.local != nil && !mayBoth(w.latency, *w.local)),
		atOdds("WithLocalServer", "WithPlainLaw", w.local != nil && w.plain),
		atOdds("WithLocalServer", "WithRamp", w.local != nil && w.ramp != nil),
	)
}

// mayBoth reports whether two targets agree: one says nothing, or both say the same.
func mayBoth(a, b time.Duration) bool { return a == 0 || b == 0 || a == b }

func atOdds(a, b string, they bool) error {
	if they {
		return fmt.Errorf("%s and %s contradict each other", a, b)
	}
	return nil
}

// WithLimits tells what every lane may draw. Limits that are not told are learned. Lanes
// that [WithLane] names have their own.
func WithLimits(l Limits) Option {
	return sharedOption(func(c *config) { c.lanes.limits = &l }, "WithLimits(%+v)", l)
}

// WithPlainLaw paces by the limits that were told and a rate found by trial (slow
// up, fast down), with a cooldown and a ramp after each wave of refusals, instead
// of by a model of the provider's own buckets. It starts at full speed.
//
// The fields Ramp, Cooldown and Rate of a [LaneConfig] are for this law alone; but for
// Rate.Initial, the model law refuses them.
func WithPlainLaw() Option {
	return sharedOption(func(c *config) { c.lanes.plain = true }, "WithPlainLaw()")
}

// WithLocalServer says that the server is one's own (vLLM, llama.cpp, Ollama) and
// queues instead of refusing: as many calls are in flight as keep the 90th
// percentile of latency under target. 0 means a minute, or half of the attempt timeout (that
// of the lane if [WithLaneDefaults] says one) if that is less. The plain law does not know such servers.
func WithLocalServer(target time.Duration) Option {
	return sharedOption(func(c *config) { c.lanes.local = &target }, "WithLocalServer(%v)", target)
}

// WithLatencyTarget keeps the mean latency of answers within 1.25 times the target, by
// fewer calls in flight where it would be over; what headers or limits say binds as well.
// 0, the default, lets answers take as long as they take. It is for servers whose latency
// answers to their load: where a single call takes longer than the target, one call is in
// flight at a time. Of a server as in [WithLocalServer] it is the latency that the 90th
// percentile stays under.
func WithLatencyTarget(target time.Duration) Option {
	return sharedOption(func(c *config) { c.lanes.latency = target }, "WithLatencyTarget(%v)", target)
}

// WithRamp asks for the plain law, with a fixed graduated recovery after each cooldown
// instead of one to the rate that was learned: in a straight line from initial to target
// calls per second, over duration. Zero values mean 5, 20 and 300 s. Outside a ramp only
// the limits that were told hold calls back.
func WithRamp(initial, target float64, duration time.Duration) Option {
	return sharedOption(func(c *config) {
		c.lanes.ramp = &RampConfig{
			Initial:  cmp.Or(initial, limiter.DefaultRampInitial),
			Target:   cmp.Or(target, limiter.DefaultRampTarget),
			Duration: cmp.Or(duration, limiter.DefaultRampDuration),
		}
	}, "WithRamp(%v, %v, %v)", initial, target, duration)
}

// WithCharge says how the provider draws on its limits, where neither [WithLane] nor
// [WithLaneDefaults] does: what items tell as their [Cost] is then an estimate, whose Input are the tokens of the prompt
// and whose Output is the bound on output, 0 if there is none. The zero Charge, which is
// the default, takes the cost as it was told.
func WithCharge(charge Charge) Option {
	return sharedOption(func(c *config) { c.lanes.charge = charge }, "WithCharge(%+v)", charge)
}

// WithPeriods says what the limits in the provider's headers are for, where neither
// [WithLane] nor [WithLaneDefaults] does; see [Periods]. What it does not say is found out. A limit by the day stops its lane
// once a header says that nothing is left of it, and that it is not whole again within 15
// minutes: [ErrWaitTooLong], and behind it a [UsedUpError].
func WithPeriods(p Periods) Option {
	return sharedOption(func(c *config) { c.lanes.periods = p }, "WithPeriods(%+v)", p)
}

// WithLane says what one lane is like, in all: of what other options say of lanes, nothing
// is added. "" is [DefaultLane].
func WithLane(name string, l LaneConfig) Option {
	return sharedOption(func(c *config) {
		if c.machine.Lanes == nil {
			c.machine.Lanes = map[string]LaneConfig{}
		}
		c.machine.Lanes[laneName(name)] = l
	}, "WithLane(%q)", name)
}

// WithLaneDefaults says what lanes are like that no WithLane names: cooldown, breaker,
// error window, window of calls in flight, and the rest of a [LaneConfig]. To it is added
// what WithLimits, WithCharge, WithPeriods, WithPlainLaw, WithRamp, WithLocalServer and
// WithLatencyTarget say.
func WithLaneDefaults(l LaneConfig) Option {
	return sharedOption(func(c *config) { c.lanes.defaults = l }, "WithLaneDefaults()")
}

// LaneOf is what options say of the lanes that no WithLane names: for whoever names lanes
// while a run is on, as [Control.Define] does. The error is [ErrConfig]: what cannot be
// meant, of these options or of a run's.
func LaneOf(opts ...Option) (LaneConfig, error) {
	c := configure(opts)
	return c.machine.Lane, c.check()
}

// DefaultFirstAnswer is how long a lane that was never answered is tried.
const DefaultFirstAnswer = machine.DefaultFirstAnswer

// WithFirstAnswer sets for how long the calls of a lane that was never answered, nor
// refused, may all break with errors of one [Kind], before it is taken that nobody is
// there: the lane then stops, by [ErrNoAnswer]. Its breaker must be open, three tries, one
// after the other, have broken, and none be under way that may yet be answered: so it is
// no matter of a few items, and a server that is slow, or says that it is busy, has its
// time. Once a lane was answered, or refused, its breaker waits. Default 30 s; 0 waits for
// ever.
//
// On a [Shared] a lane that has stopped for this is tried anew by the first run to draw on
// it once no other does, and after [Shared.ResetLane].
func WithFirstAnswer(d time.Duration) Option {
	return sharedOption(func(c *config) { c.firstAnswer = d }, "WithFirstAnswer(%v)", d)
}

// DefaultOutagePatience is how long nothing may be answered on a lane until it stops.
const DefaultOutagePatience = machine.DefaultOutagePatience

// WithOutagePatience sets how long an outage of a lane may last that was answered or refused
// before. The lane then stops, by [ErrOutage]: its breaker is open, or it is refused, and
// nothing was answered for that long. Default 6 h; 0 waits for ever.
func WithOutagePatience(d time.Duration) Option {
	return sharedOption(func(c *config) { c.outagePatience = d }, "WithOutagePatience(%v)", d)
}

// WithAnsweredBefore says that every lane was answered in an earlier run, as results of it
// prove: calls that all break are then an outage and no wrong address, and items that fail
// alike are to blame themselves. What [WithMemory] restores says the same of its lanes.
func WithAnsweredBefore() Option {
	return sharedOption(func(c *config) { c.machine.AnsweredBefore = true }, "WithAnsweredBefore()")
}

// WithIdleLanes sets how long a lane is remembered that nobody uses: more than 0, default
// 15 minutes. What it has learned is then forgotten, and its counters with it. A lane is kept
// until its limits are whole again.
func WithIdleLanes(ttl time.Duration) Option {
	return sharedOption(func(c *config) { c.machine.IdleTTL = ttl }, "WithIdleLanes(%v)", ttl)
}

// WithMaxLanes bounds how many lanes may be known at once: at least 1, default 100,000. An
// item that needs one more ends its run with [ErrTooManyLanes]: as a rule a field that
// differs from item to item was taken for the name of a pool. Lanes that are idle make
// room; see [WithIdleLanes].
func WithMaxLanes(n int) Option {
	return sharedOption(func(c *config) { c.machine.MaxLanes = n }, "WithMaxLanes(%d)", n)
}

// WithBackoff sets how long an item waits after a failed attempt (not after a refusal):
// by chance between a tenth of base and a bound, which is base after the first, doubles
// with each, and ends at most. Zero values mean 500 ms and 30 s.
func WithBackoff(base, most time.Duration) Option {
	b := limiter.BackoffConfig{Base: base, Max: most}
	return sharedOption(func(c *config) { c.machine.Backoff = b }, "WithBackoff(%v, %v)", base, most)
}

// WithSeed makes the jitter reproducible.
func WithSeed(seed uint64) Option {
	return sharedOption(func(c *config) { c.machine.Seed = seed }, "WithSeed(%d)", seed)
}

// WithClock runs the batch on another clock, for tests.
func WithClock(clock clockwork.Clock) Option {
	return sharedOption(func(c *config) {
		c.clock = clock
		c.fault(notNil("WithClock", clock == nil))
	}, "WithClock()")
}

// DefaultLane is the lane, and the pool, of items that name none.
const DefaultLane = machine.DefaultPool

func laneName(name string) string { return cmp.Or(name, DefaultLane) }
