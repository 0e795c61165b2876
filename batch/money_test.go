package batch

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// flat is a budget of max dollars for calls that take a cent each, and cost half of it.
func flat(most float64) Budget[int] {
	return Budget[int]{
		Max:     most,
		Reserve: func(int, string, float64) (float64, bool) { return 0.01, true },
		Cost:    func(_ int, _ string, u provider.Usage) (float64, bool) { return float64(u.OutputTokens) / 1000, true },
	}
}

// uses has a call take a second and use so many tokens.
func uses(n int64) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		time.Sleep(time.Second)
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 1, OutputTokens: n})
		return i, nil
	}
}

// A run of 64 calls at once stops at its budget, and not before it; a larger one goes on from there.
func TestMaxCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum Summary
		b := flat(1)
		results, err := Run(t.Context(), slices.Values(make([]int, 1000)), uses(5), WithMaxCost(b), WithConcurrency(64), WithSummary(&sum))
		var why *BudgetError
		if !errors.Is(err, ErrMaxCost) || errors.Is(err, ErrStopped) || !errors.As(err, &why) {
			t.Fatalf("the run ends with %v, want ErrMaxCost", err)
		}
		m := sum.Money
		if m.Spent.USD() < 0.97 || m.Spent.USD() > 1 || m.Reserved != 0 || m.Over != 0 {
			t.Errorf("of a dollar: %+v, want 0.97 to 1 spent", m)
		}
		if last := results[len(results)-1]; !errors.Is(last.Err, ErrNotRun) || !errors.Is(last.Err, ErrMaxCost) {
			t.Errorf("an item that was left: %v", last.Err)
		}
		b.Max, b.Before = 2, m.Spent.USD()
		if _, err := Run(t.Context(), slices.Values(make([]int, 100)), uses(5), WithMaxCost(b), WithSummary(&sum)); err != nil || sum.Money.Spent.USD() < 1.45 {
			t.Errorf("a hundred more: %v, %+v", err, sum.Money)
		}
	})
}

// A cap that is less than the least sum of money is a cap.
func TestMaxCostOfNearlyNothing(t *testing.T) {
	b := flat(1e-13)
	calls := 0
	_, err := Run(t.Context(), slices.Values(make([]int, 3)), func(context.Context, int) (int, error) { calls++; return 0, nil }, WithMaxCost(b))
	if !errors.Is(err, ErrMaxCost) || calls > 0 {
		t.Errorf("the run ends with %v after %d calls, want ErrMaxCost and none", err, calls)
	}
}

// A call whose cost is not known keeps its reservation in doubt; one that was refused costs
// nothing; one that cost more than reserved says by how much.
func TestMaxCostOfEndings(t *testing.T) {
	for name, c := range map[string]struct {
		call                  Func[int, int]
		spent, doubtful, over float64
	}{
		"too dear": {uses(50), 0.05, 0, 0.04},
		"refused": {func(context.Context, int) (int, error) {
			return 0, &provider.Error{Kind: provider.Invalid, Status: 400}
		}, 0, 0, 0},
		"unknown": {func(ctx context.Context, _ int) (int, error) {
			provider.RecorderFrom(ctx).Usage(provider.Usage{OutputTokens: 13})
			return 0, nil
		}, 0, 0.01, 0},
		"no fit": {func(context.Context, int) (int, error) { return 0, DoesNotFit(errForm) }, 0, 0.01, 0},
		"panic":  {func(context.Context, int) (int, error) { panic("oh") }, 0, 0.01, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sum Summary
			b := flat(1)
			b.Cost = func(_ int, _ string, u provider.Usage) (float64, bool) {
				return float64(u.OutputTokens) / 1000, u.OutputTokens != 13 && u.OutputTokens != 0
			}
			_, err := Run(t.Context(), slices.Values([]int{1}), c.call, WithMaxCost(b), WithSummary(&sum))
			if m := sum.Money; err != nil || m.Spent.USD() != c.spent || m.Doubtful.USD() != c.doubtful || m.Over.USD() != c.over || m.Reserved != 0 {
				t.Errorf("%s: %v, %+v, want %v spent, %v in doubt, %v over", name, err, m, c.spent, c.doubtful, c.over)
			}
		})
	}
}

// A run stops before a call without a price; a price that panics is that, and says so.
func TestMaxCostUnknownPrice(t *testing.T) {
	for name, reserve := range map[string]func(int, string, float64) (float64, bool){
		"unknown":  func(i int, _ string, _ float64) (float64, bool) { return 0, i < 3 },
		"negative": func(i int, _ string, _ float64) (float64, bool) { return 2 - float64(i), true },
		"panics": func(i int, _ string, _ float64) (float64, bool) {
			if i >= 3 {
				panic("no such model")
			}
			return 0, true
		},
		"never returns": func(i int, _ string, _ float64) (float64, bool) {
			if i >= 3 {
				runtime.Goexit() // as the FailNow of a test does
			}
			return 0, true
		},
	} {
		b := flat(1)
		b.Reserve = reserve
		called := 0
		results, err := Run(t.Context(), slices.Values([]int{2, 3, 4}), func(context.Context, int) (int, error) { called++; return 0, nil }, WithMaxCost(b), WithConcurrency(1))
		var why *BudgetError
		if !errors.As(err, &why) || !why.Unpriced || why.Item != 1 || called != 1 || !errors.Is(results[2].Err, ErrNotRun) {
			t.Errorf("%s: %v after %d calls", name, err, called)
		}
		if says := strings.Contains(err.Error(), "no such model"); says != (name == "panics") {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, errGone) != (name == "never returns") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A function that ends the goroutine that asks it for a cost loses its item, and no other.
func TestMaxCostGoexitInCost(t *testing.T) {
	b := flat(1)
	b.Cost = func(i int, _ string, _ provider.Usage) (float64, bool) {
		if i == 3 {
			runtime.Goexit()
		}
		return 0, true
	}
	results, err := Run(t.Context(), slices.Values([]int{2, 3, 4}), double, WithMaxCost(b), WithConcurrency(1))
	if err != nil || !errors.Is(results[1].Err, errGone) || results[0].Err != nil || results[2].Err != nil {
		t.Errorf("%v, %+v", err, results)
	}
}

// A budget that cannot be is refused, under the name of its option.
func TestMaxCostIsChecked(t *testing.T) {
	for _, change := range []func(*Budget[int]){
		func(b *Budget[int]) { b.Max = 0 },
		func(b *Budget[int]) { b.Max = math.NaN() },
		func(b *Budget[int]) { b.Max = 2 * MostBudget },
		func(b *Budget[int]) { b.Before = -1 },
		func(b *Budget[int]) { b.Before = math.Inf(1) },
		func(b *Budget[int]) { b.Reserve = nil },
		func(b *Budget[int]) { b.Cost = nil },
	} {
		b := flat(1)
		change(&b)
		if _, err := Run(t.Context(), slices.Values([]int{1}), double, WithMaxCost(b)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "WithMaxCost") {
			t.Errorf("%+v: %v", b.Max, err)
		}
	}
	if _, err := Run(t.Context(), slices.Values([]int{1}), double, WithMaxCost(Budget[string]{
		Max: 1, Reserve: func(string, string, float64) (float64, bool) { return 0, true }, Cost: func(string, string, provider.Usage) (float64, bool) { return 0, true },
	})); !errors.Is(err, ErrConfig) {
		t.Errorf("a budget for other items: %v", err)
	}
}
