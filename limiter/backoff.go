package limiter

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Defaults of [BackoffConfig].
const (
	DefaultBackoffBase   = 500 * time.Millisecond // a server that was reset is back in about that
	DefaultBackoffMax    = 30 * time.Second       // longer waits are an outage, which is the breaker's
	DefaultBackoffFactor = 2.0
)

// BackoffFloor is the share of the first bound that every delay has at least: a
// twentieth of a second by default, about one round trip. Full jitter alone may draw
// 0, and a call that failed this instant fails again for the same reason.
const BackoffFloor = 0.1

// BackoffConfig sets the wait of an item after a failed attempt. A field that is 0 (or cannot
// be meant) has its default.
type BackoffConfig struct {
	Base   time.Duration // the bound of the first delay
	Max    time.Duration // the bound of all delays
	Factor float64       // by which the bound grows, 1 or more
}

func (c BackoffConfig) withDefaults() BackoffConfig {
	c.Base = measure.OrElseDuration(c.Base, DefaultBackoffBase)
	c.Max = measure.OrElseDuration(c.Max, DefaultBackoffMax)
	if !(c.Factor >= 1) {
		c.Factor = DefaultBackoffFactor
	}
	return c
}

// A Backoff draws the delays before retries: exponential, with full jitter. Full
// jitter spreads the retries of calls that failed together over the whole span, where
// a small jitter lets them collide again (Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015). The zero value has the default configuration.
type Backoff struct{ config BackoffConfig }

// NewBackoff returns a backoff.
func NewBackoff(c BackoffConfig) Backoff { return Backoff{config: c} }

// Delay returns the wait after the given attempt failed; the first is 1. It is uniform between
// a tenth of Base and min(Max, Base·Factor^(attempt−1)), whatever the attempt. The generator
// must not be nil; the same seed gives the same delays.
func (b Backoff) Delay(attempt int, rng *rand.Rand) time.Duration {
	c := b.config.withDefaults()
	most := measure.Grown(c.Base, c.Factor, max(0, attempt-1), c.Max)
	least := BackoffFloor * float64(min(c.Base, c.Max))
	return time.Duration(least + rng.Float64()*(float64(most)-least))
}
