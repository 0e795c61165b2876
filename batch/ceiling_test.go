package batch

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A given limit is a ceiling under either law: a server that holds exactly that limit
// refuses nothing, and nearly all of the limit is used.
func TestToldLimitIsACeiling(t *testing.T) {
	for name, c := range map[string]struct {
		told   Limits
		tokens float64 // of each call
		fits   float64 // calls a minute
	}{
		"3 requests":    {Limits{RPM: 3}, 0, 3},
		"60 requests":   {Limits{RPM: 60}, 0, 60},
		"calls of 20 %": {Limits{TPM: 60_000}, 12_000, 5},
		"calls of 97 %": {Limits{TPM: 30_000}, 29_000, 30.0 / 29},
		"a daily limit": {Limits{TPM: 500_000 / 1440.0}, 2_000, 500_000 / 1440.0 / 2_000},
	} {
		for law, opts := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
			t.Run(fmt.Sprint(law, ", ", name), func(t *testing.T) {
				if law == "plain" && c.tokens > c.told.TPM {
					t.Skip("the debt of the plain law ends at a minute")
				}
				synctest.Test(t, func(t *testing.T) {
					const items = 60
					bucket := make(chan float64, 1) // how many calls it holds: one, full at the start
					bucket <- 1
					last, refused := time.Now(), make(chan struct{}, 10*items)
					fn := func(ctx context.Context, i int) (int, error) {
						if law == "model" { // it allows for calls that are late
							time.Sleep(time.Duration(i*7%10) * 2 * time.Millisecond)
						}
						level := <-bucket
						now := time.Now()
						level = min(1, level+c.fits*now.Sub(last).Minutes())
						last = now
						if level < 1-1e-6 {
							bucket <- level
							refused <- struct{}{}
							return 0, RetryAfter(time.Second, errTeapot)
						}
						bucket <- level - 1
						return i, pause(ctx, time.Second)
					}
					began := time.Now()
					opts := append(opts[:len(opts):len(opts)], WithLimits(c.told), WithConcurrency(32), WithCostOf(func(int) Cost { return Cost{Input: c.tokens} }))
					_, sum, err := judged(t.Context(), t, numbers(items), fn, opts...)
					used := (items - 1) / c.fits / (time.Since(began) - time.Second).Minutes() // without the last answer
					if err != nil || sum.Succeeded != items || len(refused) > 0 || used < 0.97 {
						t.Errorf("%v, %d succeeded, %d calls were refused, and %.3f of the limit used", err, sum.Succeeded, len(refused), used)
					}
				})
			})
		}
	}
}

// Costs that cannot be meant draw nothing, and leave a told limit as it is.
func TestSenselessCostsMoveNoLimit(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e6} {
		for law, opts := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
			t.Run(fmt.Sprint(law, ", ", x), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cost := func(i int) Cost {
						if i%10 == 9 {
							return Cost{Requests: x, Input: x, Output: x}
						}
						return Cost{Input: 500, Output: 100}
					}
					began := time.Now()
					opts = append(opts[:len(opts):len(opts)], WithLimits(Limits{TPM: 60_000}), WithConcurrency(16), WithCostOf(cost))
					_, sum, err := judged(t.Context(), t, numbers(1000), takes(time.Second), opts...)
					want := 540 * time.Second // 900 calls of 600 tokens
					if took := time.Since(began); err != nil || sum.Succeeded != 1000 || took < want*97/100 || took > want*103/100 {
						t.Errorf("%v, %d succeeded in %v, want %v", err, sum.Succeeded, took, want)
					}
				})
			})
		}
	}
}
