package batch

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The longest durations that Go has mean a long time, and not one that is over: an endless wait
// lasts until the run is called off, here after a week. The driver's alarm is ten seconds ahead
// at most, so that a longer wait costs the test its time.
func TestLongestDurationsAreNotOver(t *testing.T) {
	const endless = time.Duration(math.MaxInt64)
	const week = 7 * 24 * time.Hour
	refused := RetryAfter(0, errors.New("slow down"))
	broken := &Error{Kind: Server, Err: errors.New("broken")}
	for name, c := range map[string]struct {
		fault error
		opts  []Option
	}{
		"cooldown": {refused, []Option{WithPlainLaw(), WithLaneDefaults(LaneConfig{Cooldown: CooldownConfig{Base: endless, Max: endless}})}},
		"backoff":  {broken, []Option{WithBackoff(endless, endless), WithSeed(3)}},
		"breaker": {broken, []Option{WithLaneDefaults(LaneConfig{
			Breaker: BreakerConfig{Consecutive: 1, OpenFor: endless, MaxOpen: endless},
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				fn := func(context.Context, int) (int, error) {
					if tries++; tries == 1 {
						return 0, c.fault
					}
					return 1, nil
				}
				c.opts = append(c.opts, WithConcurrency(1), WithAttemptTimeout(endless), WithItemTimeout(endless), WithLongWait(endless),
					WithFirstAnswer(endless), WithOutagePatience(endless), WithIdleLanes(endless), WithProgressEvery(endless))
				ctx, cancel := context.WithTimeout(t.Context(), week)
				defer cancel()
				results, _, err := proved(ctx, t, numbers(1), fn, c.opts...)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || tries != 1 || took != week {
					t.Errorf("%v after %v and %d calls: %+v", err, took, tries, results)
				}
			})
		})
	}
}

// A pace that is lowered for ever is as low after an hour of answers as it was.
func TestEndlessHoldStaysSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := limiter.ErrorWindowConfig{Hold: math.MaxInt64, Factor: 0.5}
		calls, began := 0, time.Now()
		fn := func(context.Context, int) (int, error) {
			if calls++; calls > 100 && calls <= 160 && calls%2 == 0 {
				return 0, &Error{Kind: Server, Err: errors.New("broken")}
			}
			return 1, nil
		}
		_, _, err := proved(t.Context(), t, numbers(4000), fn,
			WithPlainLaw(), WithLimits(Limits{RPM: 60}), WithConcurrency(4), WithMaxAttempts(9),
			WithLaneDefaults(LaneConfig{Limits: Limits{RPM: 60}, Errors: hold}))
		if took := time.Since(began); err != nil || took < 7000*time.Second {
			t.Errorf("%v: 4,000 calls took %v, at one a second and half of that", err, took)
		}
	})
}
