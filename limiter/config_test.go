package limiter

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// What cannot be meant is refused, with the field's name; zero values and what the
// defaults say are fine.
func TestConfigsThatCannotBeMeant(t *testing.T) {
	for field, err := range map[string]error{
		"ramp: initial":         RampConfig{Initial: math.NaN()}.Validate(),
		"ramp: target":          RampConfig{Target: math.Inf(1)}.Validate(),
		"ramp: duration":        RampConfig{Duration: -1}.Validate(),
		"rate: initial":         RateConfig{Initial: -1}.Validate(),
		"rate: floor":           RateConfig{Floor: -1}.Validate(),
		"rate: ceiling":         RateConfig{Ceiling: math.Inf(1)}.Validate(),
		"rate: increase":        RateConfig{Increase: -1}.Validate(),
		"rate: decrease":        RateConfig{Decrease: 1}.Validate(),
		"breaker: window":       BreakerConfig{Window: -1}.Validate(),
		"breaker: samples":      BreakerConfig{MinSamples: -1}.Validate(),
		"breaker: failure rate": BreakerConfig{FailureRate: math.NaN()}.Validate(),
		"breaker: successes":    BreakerConfig{Successes: -1}.Validate(),
		"breaker: open for":     BreakerConfig{OpenFor: DefaultBreakerMaxOpen + 1}.Validate(),
		"at most":               BreakerConfig{MaxOpen: -1}.Validate(),
		"error window: window":  ErrorWindowConfig{Window: -1}.Validate(),
		"error window: hold":    ErrorWindowConfig{Hold: -1}.Validate(),
		"error window: buckets": ErrorWindowConfig{Buckets: measure.MaxSlots + 1}.Validate(),
		"error window: high":    ErrorWindowConfig{High: 30}.Validate(), // a share, not a percentage
		"error window: low":     ErrorWindowConfig{Low: DefaultErrorHigh + 0.01}.Validate(),
		"error window: factor":  ErrorWindowConfig{Factor: 1.1}.Validate(),
		"error window: samples": ErrorWindowConfig{MinSamples: -1}.Validate(),
		"backoff: base":         BackoffConfig{Base: time.Minute}.Validate(),
		"backoff: factor":       BackoffConfig{Factor: 0.5}.Validate(),
	} {
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := errors.Join(
		RampConfig{}.Validate(), RateConfig{}.Validate(), BreakerConfig{}.Validate(), ErrorWindowConfig{}.Validate(), BackoffConfig{}.Validate(),
		BreakerConfig{}.withDefaults().Validate(),
		BackoffConfig{}.withDefaults().Validate(),
		BreakerConfig{Consecutive: -1, FailureRate: 2}.Validate(), ErrorWindowConfig{High: 0.05}.Validate(),
		BackoffConfig{Base: time.Minute, Max: time.Minute}.Validate(),
	); err != nil {
		t.Error(err)
	}
}

// Configurations that cannot be meant are refused, each by the name of its field.
func TestCooldownConfigValidate(t *testing.T) {
	for _, good := range []CooldownConfig{{}, {time.Second, time.Minute, time.Hour, 0.5}, {Jitter: -1}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for text, bad := range map[string]CooldownConfig{
		"limiter: cooldown: base: -1s is negative":            {Base: -time.Second},
		"limiter: cooldown: max: -1s is negative":             {Max: -time.Second},
		"limiter: cooldown: max directed: -1s is negative":    {MaxDirected: -time.Second},
		"limiter: cooldown: base: 1m0s is more than max 30s":  {Base: time.Minute},
		"limiter: cooldown: jitter: 1.5 is not a share of 1":  {Jitter: 1.5},
		"limiter: cooldown: jitter: NaN is not a share of 1":  {Jitter: math.NaN()},
		"limiter: cooldown: jitter: +Inf is not a share of 1": {Jitter: math.Inf(1)},
	} {
		err := bad.Validate()
		if !errors.Is(err, ErrCooldown) || err.Error() != text {
			t.Errorf("%+v: got %v, want %s", bad, err, text)
		}
	}
}
