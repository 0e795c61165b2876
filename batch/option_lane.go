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

// Options about lanes, and about what watches over all of them. If several runs share one
// coordinator, these options go to [NewShared].

// laneOptions holds what options say of the lanes that no WithLane names. It keeps them as
// given until all options are applied, so that their order does not matter.
type laneOptions struct {
	defaults LaneConfig     // WithLaneDefaults
	limits   *Limits        // WithLimits; nil: not given, as in the fields below
	ramp     *RampConfig    // WithRamp
	local    *time.Duration // WithLocalServer
	plain    bool           // WithPlainLaw
	latency  time.Duration  // WithLatencyTarget; 0: not given
	charge   Charge         // WithCharge, likewise; that of WithLaneDefaults wins
	periods  Periods        // WithPeriods, likewise
}

// compose returns the settings that the options add up to.
func (w laneOptions) compose(attemptTimeout time.Duration) (LaneConfig, error) {
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

// contradictions returns an error for options that are invalid, alone or together. Two
// options that say the same do not contradict each other.
func (w laneOptions) contradictions() error {
	d := w.defaults
	var shape error
	if w.ramp != nil {
		shape = w.ramp.Validate()
	}
	return errors.Join(
		inOption("WithRamp", shape),
		conflict("WithLimits", "WithLaneDefaults", w.limits != nil && d.Limits != Limits{} && d.Limits != *w.limits),
		conflict("WithRamp", "WithLaneDefaults", w.ramp != nil && (d.Local || d.Law == limiter.NoLaw || d.Ramp != RampConfig{} && d.Ramp != *w.ramp)),
		conflict("WithPlainLaw", "WithLaneDefaults", w.plain && (d.Local || d.Law == limiter.NoLaw)),
		conflict("WithLocalServer", "WithLaneDefaults", w.local != nil && (d.Law != limiter.Model || !mayBoth(*w.local, d.Target))),
		conflict("WithLatencyTarget", "WithLaneDefaults", !mayBoth(w.latency, d.Target)),
		conflict("WithLatencyTarget", "WithLocalServer", w.local != nil && !mayBoth(w.latency, *w.local)),
		conflict("WithLocalServer", "WithPlainLaw", w.local != nil && w.plain),
		conflict("WithLocalServer", "WithRamp", w.local != nil && w.ramp != nil),
	)
}

// mayBoth reports whether two targets agree: one is not given, or both are the same.
func mayBoth(a, b time.Duration) bool { return a == 0 || b == 0 || a == b }

func conflict(a, b string, is bool) error {
	if is {
		return fmt.Errorf("%s and %s contradict each other", a, b)
	}
	return nil
}

// WithLimits sets what every lane may draw. Limits that are not given are learned. Lanes
// that [WithLane] names have their own.
func WithLimits(l Limits) Option {
	return sharedOption(func(c *config) { c.lanes.limits = &l }, "WithLimits(%+v)", l)
}

// WithPlainLaw paces calls by the given limits and by a rate found by trial (slow up,
// fast down). A cooldown and a ramp follow each wave of refusals. The default law models
// the provider's own buckets instead. The plain law starts at full speed.
//
// The fields Ramp, Cooldown and Rate of a [LaneConfig] are for this law alone. The model
// law refuses them, except Rate.Initial.
func WithPlainLaw() Option {
	return sharedOption(func(c *config) { c.lanes.plain = true }, "WithPlainLaw()")
}

// WithLocalServer says that the server is the caller's own (vLLM, llama.cpp, Ollama) and
// queues instead of refusing. The run keeps as many calls in flight as keep the 90th
// percentile of latency under target. A target of 0 means a minute, or half of the attempt
// timeout if that is less. The attempt timeout is that of the lane if [WithLaneDefaults]
// sets one. The plain law does not know such servers.
func WithLocalServer(target time.Duration) Option {
	return sharedOption(func(c *config) { c.lanes.local = &target }, "WithLocalServer(%v)", target)
}

// WithLatencyTarget keeps the mean latency of answers within 1.25 times the target, by
// fewer calls in flight where it would be over. Headers and limits bind as well. 0, the
// default, sets no target. It is for servers whose latency depends on their load: where a
// single call takes longer than the target, one call is in flight at a time. For a server
// as in [WithLocalServer], the 90th percentile of latency stays under the target.
func WithLatencyTarget(target time.Duration) Option {
	return sharedOption(func(c *config) { c.lanes.latency = target }, "WithLatencyTarget(%v)", target)
}

// WithRamp selects the plain law, with a fixed graduated recovery after each cooldown
// instead of a recovery to the learned rate. The rate rises in a straight line from initial
// to target calls per second, over duration. Zero values mean 5, 20 and 300 s. Outside a
// ramp only the given limits hold calls back.
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
// [WithLaneDefaults] does. The [Cost] of an item is then an estimate. Its Input counts the
// tokens of the prompt; its Output is the bound on output, 0 if there is none. The zero
// Charge, which is the default, takes the cost as given.
func WithCharge(charge Charge) Option {
	return sharedOption(func(c *config) { c.lanes.charge = charge }, "WithCharge(%+v)", charge)
}

// WithPeriods says which periods the limits in the provider's headers cover, where neither
// [WithLane] nor [WithLaneDefaults] does; see [Periods]. The run finds out the others. A
// limit by the day stops its lane once a header says that nothing is left of it, and that
// it is not whole again within 15 minutes. The error is then [ErrWaitTooLong], with a
// [UsedUpError] behind it.
func WithPeriods(p Periods) Option {
	return sharedOption(func(c *config) { c.lanes.periods = p }, "WithPeriods(%+v)", p)
}

// WithLane gives all the settings of one lane; other options about lanes add nothing to
// them. "" is [DefaultLane].
func WithLane(name string, l LaneConfig) Option {
	return sharedOption(func(c *config) {
		if c.machine.Lanes == nil {
			c.machine.Lanes = map[string]LaneConfig{}
		}
		c.machine.Lanes[laneName(name)] = l
	}, "WithLane(%q)", name)
}

// WithLaneDefaults gives the settings of lanes that no WithLane names: cooldown, breaker,
// error window, window of calls in flight, and the rest of a [LaneConfig]. WithLimits,
// WithCharge, WithPeriods, WithPlainLaw, WithRamp, WithLocalServer and WithLatencyTarget
// add to them.
func WithLaneDefaults(l LaneConfig) Option {
	return sharedOption(func(c *config) { c.lanes.defaults = l }, "WithLaneDefaults()")
}

// LaneOf returns the settings that opts give to lanes that no WithLane names. It is for
// callers that name lanes while a run is on, as [Control.Define] does. The error is
// [ErrConfig] if any of opts is invalid, options about a run included.
func LaneOf(opts ...Option) (LaneConfig, error) {
	c := configure(opts)
	return c.machine.Lane, c.check()
}

// DefaultFirstAnswer is the time for which a lane that was never answered is tried.
const DefaultFirstAnswer = machine.DefaultFirstAnswer

// WithFirstAnswer sets how long to try a lane that was never answered, nor refused, while
// all its calls break with errors of one [Kind]. After that time the server counts as
// absent: the lane stops, by [ErrNoAnswer]. Three more conditions must hold: its breaker is
// open, three tries have broken one after the other, and no call is under way that may yet
// be answered. So a few items alone do not stop a lane, and a server that is slow, or says
// that it is busy, has its time. Once a lane was answered, or refused, its breaker waits.
// Default 30 s; 0 waits for ever.
//
// On a [Shared], a lane that has stopped this way is tried anew after [Shared.ResetLane].
// The first run to draw on it once no other run does also tries it anew.
func WithFirstAnswer(d time.Duration) Option {
	return sharedOption(func(c *config) { c.firstAnswer = d }, "WithFirstAnswer(%v)", d)
}

// DefaultOutagePatience is the time without an answer after which a lane stops.
const DefaultOutagePatience = machine.DefaultOutagePatience

// WithOutagePatience sets how long an outage may last on a lane that was answered or
// refused before. The lane then stops, by [ErrOutage]: its breaker is open, or it is
// refused, and nothing was answered for that long. Default 6 h; 0 waits for ever.
func WithOutagePatience(d time.Duration) Option {
	return sharedOption(func(c *config) { c.outagePatience = d }, "WithOutagePatience(%v)", d)
}

// WithAnsweredBefore says that every lane was answered in an earlier run, as that run's
// results prove. If all calls break, that is then an outage and not a wrong address. If
// items fail alike, the items are to blame. A memory given by [WithMemory] says the same of
// its lanes.
func WithAnsweredBefore() Option {
	return sharedOption(func(c *config) { c.machine.AnsweredBefore = true }, "WithAnsweredBefore()")
}

// WithIdleLanes sets how long a lane that nobody uses is remembered: more than 0, default
// 15 minutes. The run then forgets what the lane has learned, and its counters. It keeps a
// lane until the lane's limits are whole again.
func WithIdleLanes(ttl time.Duration) Option {
	return sharedOption(func(c *config) { c.machine.IdleTTL = ttl }, "WithIdleLanes(%v)", ttl)
}

// WithMaxLanes bounds how many lanes may be known at once: at least 1, default 100,000. An
// item that needs one more ends its run with [ErrTooManyLanes]. As a rule, a field that
// differs from item to item was then taken for the name of a pool. Idle lanes make room;
// see [WithIdleLanes].
func WithMaxLanes(n int) Option {
	return sharedOption(func(c *config) { c.machine.MaxLanes = n }, "WithMaxLanes(%d)", n)
}

// WithBackoff sets how long an item waits after a failed attempt (not after a refusal). The
// wait is random, between a tenth of base and a bound. The bound is base after the first
// failure and doubles with each further one, up to most. Zero values mean 500 ms and 30 s.
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
		c.addFault(notNil("WithClock", clock == nil))
	}, "WithClock()")
}

// DefaultLane is the lane, and the pool, of items that name none.
const DefaultLane = machine.DefaultPool

func laneName(name string) string { return cmp.Or(name, DefaultLane) }
