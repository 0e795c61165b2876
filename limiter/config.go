package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Users configure the laws' parts by the types of this file.

// ErrConfig is the kind of every error of the Validate of a [RampConfig], [RateConfig],
// [BreakerConfig], [ErrorWindowConfig] or [BackoffConfig]. Each finds values that cannot be
// meant, and names the field. Parts that are made of such a configuration all the same use the
// default there. 0 is a default, and always fine.
var ErrConfig = errors.New("limiter: configuration")

// Validate wants rates that are finite and 0 or more, and a duration of 0 or more.
func (c RampConfig) Validate() error {
	return errors.Join(
		validAmount("ramp: initial", c.Initial, math.MaxFloat64),
		validAmount("ramp: target", c.Target, math.MaxFloat64),
		validSpan("ramp: duration", c.Duration),
	)
}

// Validate returns an error unless all rates are finite and not negative, and the decrease is less
// than 1.
func (c RateConfig) Validate() error {
	return errors.Join(
		validAmount("rate: initial", c.Initial, math.MaxFloat64),
		validAmount("rate: floor", c.Floor, math.MaxFloat64),
		validAmount("rate: ceiling", c.Ceiling, math.MaxFloat64),
		validAmount("rate: increase", c.Increase, math.MaxFloat64),
		validAmount("rate: decrease", c.Decrease, math.Nextafter(1, 0)),
	)
}

// Validate returns an error if a field other than Consecutive is negative, or if the first open
// interval is longer than the longest.
func (c BreakerConfig) Validate() error {
	return errors.Join(
		validSpan("breaker: window", c.Window),
		validAmount("breaker: samples", float64(c.MinSamples), math.MaxFloat64),
		validAmount("breaker: failure rate", c.FailureRate, math.MaxFloat64),
		validAmount("breaker: successes", float64(c.Successes), math.MaxFloat64),
		validSpans("breaker: open for", c.OpenFor, c.MaxOpen, c.withDefaults().MaxOpen),
	)
}

// Validate returns an error unless all shares are in 0..1 and the low threshold is not above the
// high one.
func (c ErrorWindowConfig) Validate() error {
	return errors.Join(
		validSpan("error window: window", c.Window),
		validSpan("error window: hold", c.Hold),
		validAmount("error window: buckets", float64(c.Buckets), measure.MaxSlots),
		validAmount("error window: high", c.High, 1),
		validAmount("error window: low", c.Low, min(1, measure.OrElse(c.High, DefaultErrorHigh))),
		validAmount("error window: factor", c.Factor, 1),
		validAmount("error window: samples", float64(c.MinSamples), math.MaxFloat64),
	)
}

// Validate wants a first bound that is not above the last, and a factor of 1 or more.
func (c BackoffConfig) Validate() error {
	var factor error
	if c.Factor != 0 && !(c.Factor >= 1 && c.Factor <= math.MaxFloat64) { // NaN too
		factor = fmt.Errorf("%w: backoff: factor: %v is not 1 or more, and finite", ErrConfig, c.Factor)
	}
	return errors.Join(factor, validSpans("backoff: base", c.Base, c.Max, c.withDefaults().Max))
}

// validAmount returns an error that names the field if x is not in 0..most.
func validAmount(name string, x, most float64) error {
	if x >= 0 && x <= most { // not NaN
		return nil
	}
	if most == math.MaxFloat64 {
		return fmt.Errorf("%w: %s: %v is not a finite number of 0 or more", ErrConfig, name, x)
	}
	return fmt.Errorf("%w: %s: %v is not in 0..%v", ErrConfig, name, x, most)
}

func validSpan(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%w: %s: %v is negative", ErrConfig, name, d)
	}
	return nil
}

// validSpans returns an error if a first interval is negative or longer than the longest. longest
// is as the user gave it; limit is longest with its default.
func validSpans(name string, first, longest, limit time.Duration) error {
	if first < 0 || longest < 0 {
		return errors.Join(validSpan(name, first), validSpan(name+", at most", longest))
	}
	if measure.Bounded(first) > limit {
		return fmt.Errorf("%w: %s: %v is more than the most, %v", ErrConfig, name, first, limit)
	}
	return nil
}

// Defaults and bounds of [RateConfig].
const (
	// DefaultRateFloor is one call in twenty seconds, 3 a minute, the smallest limit
	// that hosted APIs publish. Lower, and the news that it is over arrives too late.
	DefaultRateFloor = 0.05

	// MaxRate is the highest finite limit, calls per second: more than one process
	// can send, so beyond it the number would mean nothing.
	MaxRate = 1e6

	// DefaultRateIncrease is the increase per second, as a share of the goal. From next to
	// nothing to nine tenths of the goal it takes half a minute. So two minutes are enough for
	// that, for the longest cooldown before it and for the ramp in between.
	DefaultRateIncrease = 0.03

	// DefaultRateDecrease is the factor of a decrease. Halving, TCP's old answer, is for queues
	// that must drain; a limiter that refuses has no queue. 0.7 is the factor that CUBIC
	// settled on (RFC 9438, 4.6), for the same reason.
	DefaultRateDecrease = 0.7
)

// RateConfig sets how a rate adapts. A field that is 0 (or cannot be meant) has its default.
// The floor gives way to the ceiling where they contradict.
type RateConfig struct {
	Initial  float64 // calls per second; 0: unlimited until something is learned
	Floor    float64 // calls per second, the least
	Ceiling  float64 // calls per second, the most; 0: none
	Increase float64 // per second, as a share of the rate that was refused last
	Decrease float64 // factor of a decrease, in (0, 1)
}

// Defaults of [RampConfig]. A server that has just refused gets a few calls a second at first.
// It has five minutes to show that it can take more: the usual span of its own load averages
// and scaling decisions.
const (
	DefaultRampInitial  = 5.0 // calls per second
	DefaultRampTarget   = 20.0
	DefaultRampDuration = 300 * time.Second
)

// MinRampRate is the slowest rate of a ramp, in calls per second. At a slower one a
// single call would be worth more than two minutes.
const MinRampRate = 1 / (float64(measure.MaxWait) / float64(time.Second))

// RampConfig shapes a ramp: from Initial to Target calls per second, in a straight
// line, over Duration. A field that is 0 (or cannot be meant) has its default. Rates
// are at least [MinRampRate]. Target may be the lower one.
type RampConfig struct {
	Initial, Target float64 // calls per second
	Duration        time.Duration
}

// Defaults of [CooldownConfig].
const (
	DefaultCooldownBase = time.Second      // also an item's wait under [Unlimited]
	DefaultCooldownMax  = 30 * time.Second // by then a limit per minute is half refilled

	// DefaultMaxDirected is the longest named wait that a lane accepts. Limits are per second,
	// minute or day. A quarter of an hour covers every wait of the first two. A longer wait
	// means a quota which no run should sit out unasked.
	DefaultMaxDirected = 15 * time.Minute

	// DefaultCooldownJitter is the positive jitter of a wait of our own choosing:
	// enough to part clients that were refused together, and never a shorter wait.
	DefaultCooldownJitter = 0.20
)

// CooldownConfig sets the time for which a refusal stops a lane. Base, Max and Jitter are the plain
// law's; the model law finds its own holds, from what it has seen of the lane. A field that is 0 has
// its default.
type CooldownConfig struct {
	Base        time.Duration // the first wait that the server did not name
	Max         time.Duration // the longest such wait, before jitter
	MaxDirected time.Duration // the longest wait that the server may name, jitter included
	Jitter      float64       // share of an undirected wait, in 0..1; less than 0: none
}

// ErrCooldown is the kind of every error of [CooldownConfig.Validate].
var ErrCooldown = errors.New("limiter: cooldown")

// Validate checks the configuration. The error names the field and is [ErrCooldown].
func (c CooldownConfig) Validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"base", c.Base}, {"max", c.Max}, {"max directed", c.MaxDirected}} {
		if f.d < 0 {
			return fmt.Errorf("%w: %s: %v is negative", ErrCooldown, f.name, f.d)
		}
	}
	if base, most := measure.OrElseDuration(c.Base, DefaultCooldownBase), measure.OrElseDuration(c.Max, DefaultCooldownMax); base > most {
		return fmt.Errorf("%w: base: %v is more than max %v", ErrCooldown, base, most)
	}
	if !(c.Jitter <= 1) { // NaN too
		return fmt.Errorf("%w: jitter: %v is not a share of 1", ErrCooldown, c.Jitter)
	}
	return nil
}

// Defaults of [ErrorWindowConfig]. Between High and Low lies room, so that a rate
// that hovers about one of them does not switch with every call.
const (
	DefaultErrorWindow     = 60 * time.Second
	DefaultErrorBuckets    = 12   // of 5 s: what is forgotten at once is a twelfth
	DefaultErrorHigh       = 0.30 // a server that fails three calls in ten is in trouble
	DefaultErrorLow        = 0.10 // one in ten is what retries are for
	DefaultErrorFactor     = 0.5
	DefaultErrorHold       = 60 * time.Second // one window: by then it holds only what the halved rate met
	DefaultErrorMinSamples = 20               // below that one failure moves the rate by more than 5 points
)

// ErrorWindowConfig says when failures slow a lane down. A field that is 0 (or cannot
// be meant) has its default.
type ErrorWindowConfig struct {
	Window     time.Duration // how far back it looks
	Buckets    int           // of the window, at most 60
	High       float64       // above this share of failures: slow down
	Low        float64       // below it, and after Hold: full speed; at most High
	Factor     float64       // what the pace is multiplied by meanwhile, in (0, 1]; 1: it is never slowed down
	Hold       time.Duration // the least time it stays slow
	MinSamples int           // fewer calls than this in the window decide nothing
}

// MeanTolerance is the factor by which the mean latency may exceed a law's target. It holds where
// latency answers to load and a single call takes less than the target.
const MeanTolerance = 1.25

// DefaultLocalTarget is the latency target where the user sets none: longer than a long answer
// takes on hardware that is fit for its model.
const DefaultLocalTarget = time.Minute

// LocalTarget returns the latency target where the user sets none: DefaultLocalTarget, or half
// of the time that a call may take if that is less. 0: a call may take any time.
func LocalTarget(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return DefaultLocalTarget
	}
	return min(DefaultLocalTarget, timeout/2)
}

// MaxSpan is the longest time that is counted: ten years, which is for ever to a run. A longer
// one counts as ten years, so that ten of them together still fit a [time.Duration].
const MaxSpan = measure.MaxSpan

// Shape of the plain law's ramp where the rate is known: from a quarter of it to
// the whole, in a straight line.
const (
	RampShare = 0.25

	// RampTime is the longest such ramp. It costs 3.75 s of traffic, and a provider's
	// minute bucket gives it back.
	RampTime = 10 * time.Second
)
