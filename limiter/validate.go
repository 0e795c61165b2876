package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrConfig is the kind of every error of the Validate of a [RampConfig], [RateConfig],
// [BreakerConfig], [ErrorWindowConfig] or [BackoffConfig]. Each finds what cannot be meant,
// and names the field; what is made of such a configuration all the same uses the default
// there. 0 is a default, and always fine.
var ErrConfig = errors.New("limiter: configuration")

// Validate wants rates that are finite and 0 or more, and a duration of 0 or more.
func (c RampConfig) Validate() error {
	return errors.Join(
		validAmount("ramp: initial", c.Initial, math.MaxFloat64),
		validAmount("ramp: target", c.Target, math.MaxFloat64),
		validSpan("ramp: duration", c.Duration),
	)
}

// Validate wants rates that are finite and 0 or more, and a decrease of less than 1.
func (c RateConfig) Validate() error {
	return errors.Join(
		validAmount("rate: initial", c.Initial, math.MaxFloat64),
		validAmount("rate: floor", c.Floor, math.MaxFloat64),
		validAmount("rate: ceiling", c.Ceiling, math.MaxFloat64),
		validAmount("rate: increase", c.Increase, math.MaxFloat64),
		validAmount("rate: decrease", c.Decrease, math.Nextafter(1, 0)),
	)
}

// Validate wants nothing negative but Consecutive, and an open interval that is not
// longer than the longest.
func (c BreakerConfig) Validate() error {
	return errors.Join(
		validSpan("breaker: window", c.Window),
		validAmount("breaker: samples", float64(c.MinSamples), math.MaxFloat64),
		validAmount("breaker: failure rate", c.FailureRate, math.MaxFloat64),
		validAmount("breaker: successes", float64(c.Successes), math.MaxFloat64),
		validSpans("breaker: open for", c.OpenFor, c.MaxOpen, c.withDefaults().MaxOpen),
	)
}

// Validate wants shares in 0..1, the low threshold not above the high one.
func (c ErrorWindowConfig) Validate() error {
	return errors.Join(
		validSpan("error window: window", c.Window),
		validSpan("error window: hold", c.Hold),
		validAmount("error window: buckets", float64(c.Buckets), maxSlots),
		validAmount("error window: high", c.High, 1),
		validAmount("error window: low", c.Low, min(1, orElse(c.High, DefaultErrorHigh))),
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

// validSpans looks at a first interval and at the longest, as it was given and as it counts.
func validSpans(name string, first, longest, counts time.Duration) error {
	if first < 0 || longest < 0 {
		return errors.Join(validSpan(name, first), validSpan(name+", at most", longest))
	}
	if bounded(first) > counts {
		return fmt.Errorf("%w: %s: %v is more than the most, %v", ErrConfig, name, first, counts)
	}
	return nil
}
