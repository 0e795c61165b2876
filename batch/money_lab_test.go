package batch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// Acceptance of --max-cost in virtual time: ten thousand items of known bound, 256 in flight,
// cost between 97 cents and the dollar that they may, however long their answers are.
func TestMaxCostOfManyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum, err := longAnswers(t, 1, func(rng *rand.Rand) float64 { return 100 * rng.Float64() }, func(float64) float64 { return 100 })
		if m := sum.Money; !errors.Is(err, ErrMaxCost) || m.Spent.USD() > 1 || m.Spent.USD() < 0.97 || m.Over != 0 {
			t.Errorf("%v, %+v", err, m)
		}
	})
}

// Answers without a bound, whose lengths have a long tail, cost no more than the sum and what the
// run states in addition. Once their lengths are known, that is little.
func TestMaxCostWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lognormal := func(rng *rand.Rand) float64 { return 50 * math.Exp(0.8*rng.NormFloat64()) }
		sum, err := longAnswers(t, 1, lognormal, func(usual float64) float64 {
			if usual == 0 {
				return 200 // few of them are longer, and those cost more than reserved
			}
			return usual
		})
		m := sum.Money
		if !errors.Is(err, ErrMaxCost) || m.Over == 0 || m.Spent > m.Cap.Plus(m.Over) || m.Spent.USD() > 1.01 || m.Spent.USD() < 0.97 {
			t.Errorf("%v, %+v", err, m)
		}
		t.Logf("%v of %v spent; %d calls cost %v more than reserved", m.Spent, m.Cap, m.OverCalls, m.Over)
	})
}

// longAnswers runs ten thousand items, 256 at once, whose answers cost a thousandth of a cent a
// token. length draws their lengths, and reserved is what a call takes.
func longAnswers(t *testing.T, usd float64, length func(*rand.Rand) float64, reserved func(usual float64) float64) (sum Summary, err error) {
	const token = 10e-6
	items := make([]int64, 10_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range items {
		items[i] = max(1, int64(length(rng)))
	}
	call := func(ctx context.Context, tokens int64) (int, error) {
		time.Sleep(time.Duration(tokens) * 20 * time.Millisecond)
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 1, OutputTokens: tokens})
		return 0, nil
	}
	_, err = Run(t.Context(), slices.Values(items), call, WithConcurrency(256), WithSummary(&sum), WithLocalServer(0), WithMaxCost(Budget[int64]{
		Max:     usd,
		Reserve: func(_ int64, _ string, usual float64) (float64, bool) { return token * reserved(usual), true },
		Cost: func(_ int64, _ string, u provider.Usage) (float64, bool) {
			return token * float64(u.OutputTokens), true
		},
	}))
	return sum, err
}
