package batch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Defaults of the options, where they are not said elsewhere.
const (
	// DefaultConcurrency is the ceiling on calls in flight.
	DefaultConcurrency = machine.DefaultConcurrency
	// DefaultAttemptTimeout ends a call that the server accepted and forgot. Two
	// minutes is longer than a long answer takes, unless a model thinks.
	DefaultAttemptTimeout = 120 * time.Second
	// DefaultReadAhead is how many items may wait for their first call.
	DefaultReadAhead = coordinator.DefaultReadAhead
	// MaxReadAhead bounds what [WithReadAhead] may ask for: there is room for so
	// many results from the start, at some hundred bytes each.
	MaxReadAhead = 1 << 16
)

// defaultLane knows nothing, learns, and follows a model of its provider.
var defaultLane = machine.LaneConfig{}

// An Option changes one thing about a run. Options are checked together, before
// any call.
type Option struct {
	text  string
	apply func(*config)
}

// String shows the option as it would be written.
func (o Option) String() string { return o.text }

func option(apply func(*config), format string, args ...any) Option {
	return Option{text: fmt.Sprintf(format, args...), apply: apply}
}

// config is what the options add up to.
type config struct {
	policy
	machine        machine.Config
	limits         machine.RunConfig
	attemptTimeout time.Duration
	readAhead      int
	inOrder        bool
	clock          clockwork.Clock
	observer       func(Event)
	every          time.Duration
	drain          <-chan struct{}
	summary        *Summary
	shared         *Shared
	control        *Control
	poolOf, costOf any // func(In) string, func(In) limiter.Cost
	faults         []error
}

func configure(opts []Option) *config {
	c := &config{
		policy:         policy{maxAttempts: DefaultMaxAttempts, patience: OverloadPatience},
		machine:        machine.Config{Lane: defaultLane},
		limits:         machine.RunConfig{Concurrency: DefaultConcurrency},
		attemptTimeout: DefaultAttemptTimeout,
		readAhead:      DefaultReadAhead,
		clock:          clockwork.NewRealClock(),
		every:          time.Second,
	}
	for _, o := range opts {
		if o.apply != nil { // the zero Option changes nothing
			o.apply(c)
		}
	}
	if c.shared != nil {
		c.clock = c.shared.clock
	}
	return c
}

// check tells all that is wrong at once, further faults included.
func (c *config) check(further ...error) error {
	faults := append(further, c.faults...)
	faults = append(faults, c.checkNumbers(), c.checkLanes())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

func (c *config) checkNumbers() error {
	return errors.Join(
		within("WithConcurrency", c.limits.Concurrency, 1, machine.MaxConcurrency),
		within("WithMaxAttempts", c.maxAttempts, 1, math.MaxInt),
		within("WithReadAhead", c.readAhead, 1, MaxReadAhead),
		within("WithAttemptTimeout", c.attemptTimeout, 0, math.MaxInt64),
		within("WithItemTimeout", c.limits.ItemTimeout, 0, math.MaxInt64),
		within("WithProgressEvery", c.every, 1, math.MaxInt64),
	)
}

func (c *config) checkLanes() error {
	faults := []error{
		machine.RunConfig{Pools: c.limits.Pools}.Validate(), // its numbers were checked above
		c.machine.Lane.Validate(),
	}
	for _, name := range slices.Sorted(maps.Keys(c.machine.Lanes)) {
		if err := c.machine.Lanes[name].Validate(); err != nil {
			faults = append(faults, fmt.Errorf("WithLane(%q): %w", name, err))
		}
	}
	if c.shared != nil && (len(c.machine.Lanes)+len(c.machine.Memory) > 0 || c.machine.Lane != defaultLane) {
		faults = append(faults, errors.New("WithShared: what its lanes are like is said where it is made, by NewShared"))
	}
	return errors.Join(faults...)
}

func within[N int | time.Duration](option string, n, least, most N) error {
	switch {
	case n < least:
		return fmt.Errorf("%s: %v is less than %v", option, n, least)
	case n > most:
		return fmt.Errorf("%s: %v is more than %v", option, n, most)
	}
	return nil
}

func notNil(what string, missing bool) error {
	if missing {
		return fmt.Errorf("%s: is nil", what)
	}
	return nil
}

// WithConcurrency sets the ceiling on calls in flight: 1..65,536, default 64.
func WithConcurrency(n int) Option {
	return option(func(c *config) { c.limits.Concurrency = n }, "WithConcurrency(%d)", n)
}

// WithLimits tells what every lane may draw. Limits that are not told are
// learned.
func WithLimits(l limiter.Limits) Option {
	return option(func(c *config) { c.machine.Lane.Limits = l }, "WithLimits(%+v)", l)
}

// WithPlainLaw paces by the limits that were told and a rate found by trial (slow
// up, fast down), with a cooldown and a ramp after each wave of refusals, instead
// of by a model of the provider's own buckets. It starts at full speed.
func WithPlainLaw() Option {
	return option(func(c *config) { c.machine.Lane.Law = limiter.Plain }, "WithPlainLaw()")
}

// WithLocalServer says that the server is one's own (vLLM, llama.cpp, Ollama) and
// queues instead of refusing: as many calls are in flight as keep the 90th
// percentile of latency under target. 0 means half of the
// attempt timeout that an option before it has set.
func WithLocalServer(target time.Duration) Option {
	return option(func(c *config) {
		c.machine.Lane.Local, c.machine.Lane.Target = true, cmp.Or(target, c.attemptTimeout/2)
	}, "WithLocalServer(%v)", target)
}

// WithRamp asks for the plain law, with a fixed graduated recovery after each
// cooldown instead of
// one to the rate that was learned: in a straight line from initial to target
// calls per second, over duration. Zero values mean 5, 20 and 300 s.
func WithRamp(initial, target float64, duration time.Duration) Option {
	return option(func(c *config) {
		if !(initial >= 0 && target >= 0 && initial+target < math.Inf(1) && duration >= 0) { // NaN too
			c.faults = append(c.faults, fmt.Errorf("WithRamp: from %v to %v in %v: all must be 0 or more, and finite", initial, target, duration))
		}
		c.machine.Lane.Law = limiter.Plain
		c.machine.Lane.Ramp = limiter.RampConfig{
			Initial:  cmp.Or(initial, limiter.DefaultRampInitial),
			Target:   cmp.Or(target, limiter.DefaultRampTarget),
			Duration: cmp.Or(duration, limiter.DefaultRampDuration),
		}
	}, "WithRamp(%v, %v, %v)", initial, target, duration)
}

// WithLane says what one lane is like.
func WithLane(name string, l machine.LaneConfig) Option {
	return option(func(c *config) {
		if c.machine.Lanes == nil {
			c.machine.Lanes = map[string]machine.LaneConfig{}
		}
		c.machine.Lanes[name] = l
	}, "WithLane(%q)", name)
}

// WithLaneDefaults says what lanes are like that no WithLane names. It
// overrides WithLimits and WithRamp before it.
func WithLaneDefaults(l machine.LaneConfig) Option {
	return option(func(c *config) { c.machine.Lane = l }, "WithLaneDefaults()")
}

// WithPool makes a pool of several lanes, which take turns. Which items are in
// it, their Pool method says, or [WithPoolOf]; the lane of a call is found by
// [LaneFrom].
func WithPool(name string, lanes ...string) Option {
	return option(func(c *config) {
		c.limits.Pools = append(c.limits.Pools, machine.PoolConfig{Name: name, Lanes: lanes})
	}, "WithPool(%q, %q)", name, lanes)
}

// WithFallback makes a pool of several lanes, of which a later one is used only
// while those before it are cooling, being probed or stopped.
func WithFallback(name string, lanes ...string) Option {
	return option(func(c *config) {
		c.limits.Pools = append(c.limits.Pools, machine.PoolConfig{Name: name, Lanes: lanes, Fallback: true})
	}, "WithFallback(%q, %q)", name, lanes)
}

// WithPoolOf says in which pool an item waits. A pool that no option describes
// has one lane of its own name.
func WithPoolOf[In any](pool func(In) string) Option {
	return option(func(c *config) { c.poolOf = pool }, "WithPoolOf()")
}

// WithCostOf says what an item's call is expected to draw. Without it a call
// costs one request, and tokens are noted when the usage is known.
func WithCostOf[In any](cost func(In) limiter.Cost) Option {
	return option(func(c *config) { c.costOf = cost }, "WithCostOf()")
}

// WithMaxAttempts bounds how many failed attempts an item may have: at least 1,
// default 5. Refusals (429, 503, 529) do not count; [MaxRefusals] and
// [OverloadPatience] bound those.
func WithMaxAttempts(n int) Option {
	return option(func(c *config) { c.maxAttempts = n }, "WithMaxAttempts(%d)", n)
}

// WithAttemptTimeout bounds one call; time spent waiting for it to leave does
// not count. Default 2 minutes; 0 is no bound.
func WithAttemptTimeout(d time.Duration) Option {
	return option(func(c *config) { c.attemptTimeout = d }, "WithAttemptTimeout(%v)", d)
}

// WithItemTimeout bounds an item from its first call to its end, waits
// included: a call that is running then is cut off. Default 0: no bound.
func WithItemTimeout(d time.Duration) Option {
	return option(func(c *config) { c.limits.ItemTimeout = d }, "WithItemTimeout(%v)", d)
}

// WithReadAhead bounds how many items may have been taken from the input beyond
// those in flight: 1..[MaxReadAhead], default 1,024.
func WithReadAhead(n int) Option {
	return option(func(c *config) { c.readAhead = n }, "WithReadAhead(%d)", n)
}

// WithInputOrder makes Stream give results in the order of the input. A result
// that is ahead of its turn is kept; how many are, the read-ahead bounds.
func WithInputOrder() Option {
	return option(func(c *config) { c.inOrder = true }, "WithInputOrder()")
}

// WithDrain drains the run when the channel is closed: what is in flight
// finishes, what waits is given back as not run, and the run's error is
// [ErrDrained] if anything was left. If it is closed before the run begins, nothing is
// called.
func WithDrain(ch <-chan struct{}) Option {
	return option(func(c *config) { c.drain = ch }, "WithDrain()")
}

// WithSummary writes the run's summary to s, before Run returns or the range
// over Stream ends.
func WithSummary(s *Summary) Option {
	return option(func(c *config) { c.summary = s }, "WithSummary()")
}

// WithSeed makes the jitter reproducible.
func WithSeed(seed uint64) Option {
	return option(func(c *config) { c.machine.Seed = seed }, "WithSeed(%d)", seed)
}

// WithClock runs the batch on another clock, for tests.
func WithClock(clock clockwork.Clock) Option {
	return option(func(c *config) { c.clock = clock }, "WithClock()")
}
