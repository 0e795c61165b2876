package batch

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// never is a call that must not be made.
func never(t *testing.T) Func[int, int] {
	return func(context.Context, int) (int, error) {
		t.Error("a call was made")
		return 0, nil
	}
}

// All that is wrong with the options is said at once, and before anything is taken
// or called.
func TestOptionsAreCheckedTogether(t *testing.T) {
	untouched := func(func(int) bool) { t.Error("the input was touched") }
	_, err := Run(t.Context(), untouched, never(t),
		WithConcurrency(0), WithMaxAttempts(0), WithReadAhead(MaxReadAhead+1), WithAttemptTimeout(-1),
		WithItemTimeout(-time.Second), WithProgressEvery(0), WithRamp(-1, 0, 0),
		WithLimits(limiter.Limits{RPM: math.NaN()}), WithLane("l", machine.LaneConfig{Window: -1}),
		WithPool("p"), WithPoolOf(func(string) string { return "" }), WithCostOf(func(string) limiter.Cost { return limiter.Cost{} }))
	if !errors.Is(err, ErrConfig) || !errors.Is(err, limiter.ErrLimits) {
		t.Fatal(err)
	}
	for _, word := range []string{
		"WithConcurrency", "WithMaxAttempts", "WithReadAhead", "WithAttemptTimeout", "WithItemTimeout",
		"WithProgressEvery", "WithRamp", "per minute", `WithLane("l")`, `pool "p"`, "WithPoolOf", "WithCostOf",
	} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: not in: %v", word, err)
		}
	}
}

// Each of these alone is refused.
func TestOptionsThatCannotBeMeant(t *testing.T) {
	shared := must.Get(NewShared())(t)
	defer shared.Close()
	for name, opts := range map[string][]Option{
		"negative concurrency":  {WithConcurrency(-1)},
		"too many workers":      {WithConcurrency(machine.MaxConcurrency + 1)},
		"infinite ramp":         {WithRamp(math.Inf(1), 0, 0)},
		"ramp of NaN":           {WithRamp(0, math.NaN(), 0)},
		"one pool twice":        {WithPool("a", "x"), WithFallback("a", "y")},
		"one lane twice":        {WithPool("a", "x", "x")},
		"limits beside Shared":  {WithShared(shared), WithLimits(limiter.Limits{RPM: 1})},
		"a lane beside Shared":  {WithShared(shared), WithLane("x", machine.LaneConfig{})},
		"a ramp beside Shared":  {WithShared(shared), WithRamp(0, 0, 0)},
		"no such burst":         {WithLimits(limiter.Limits{Burst: time.Hour})},
		"items of another type": {WithPoolOf(func(float64) string { return "" })},
	} {
		if _, err := Run(t.Context(), numbers(1), never(t), opts...); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewShared(WithConcurrency(0)); !errors.Is(err, ErrConfig) {
		t.Errorf("NewShared: %v", err)
	}
}

// A run without items or without a function is a mistake in the program, and said
// to be one.
func TestNilIsRefused(t *testing.T) {
	if _, err := Run(t.Context(), iter.Seq[int](nil), never(t)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "items") {
		t.Error(err)
	}
	if _, err := Run(t.Context(), numbers(1), Func[int, int](nil)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "fn") {
		t.Error(err)
	}
}

// An option prints as it would be written.
func TestOptionsPrint(t *testing.T) {
	for want, o := range map[string]Option{
		"WithConcurrency(8)":                   WithConcurrency(8),
		"WithAttemptTimeout(1m30s)":            WithAttemptTimeout(90 * time.Second),
		"WithItemTimeout(1s)":                  WithItemTimeout(time.Second),
		"WithMaxAttempts(3)":                   WithMaxAttempts(3),
		"WithReadAhead(7)":                     WithReadAhead(7),
		"WithRamp(1, 2, 3s)":                   WithRamp(1, 2, 3*time.Second),
		`WithPool("p", ["a" "b"])`:             WithPool("p", "a", "b"),
		`WithFallback("p", ["a" "b"])`:         WithFallback("p", "a", "b"),
		`WithPrefer("p", 1m0s, [["a"] ["b"]])`: WithPrefer("p", time.Minute, []string{"a"}, []string{"b"}),
		`WithLane("x")`:                        WithLane("x", machine.LaneConfig{}),
		"WithLaneDefaults()":                   WithLaneDefaults(machine.LaneConfig{}),
		"WithSeed(9)":                          WithSeed(9),
		"WithInputOrder()":                     WithInputOrder(),
		"WithProgressEvery(2s)":                WithProgressEvery(2 * time.Second),
		"WithDrain()":                          WithDrain(nil),
		"WithSummary()":                        WithSummary(nil),
		"WithClock()":                          WithClock(nil),
		"WithObserver()":                       WithObserver(nil),
		"WithControl()":                        WithControl(nil),
		"WithShared()":                         WithShared(nil),
		"WithPoolOf()":                         WithPoolOf(func(int) string { return "" }),
		"WithCostOf()":                         WithCostOf(func(int) limiter.Cost { return limiter.Cost{} }),
		"":                                     {},
	} {
		if o.String() != want {
			t.Errorf("%q, want %q", o, want)
		}
	}
	if s := WithLimits(limiter.Limits{RPM: 60}).String(); !strings.HasPrefix(s, "WithLimits({RPM:60 ") {
		t.Error(s)
	}
}

// The zero Option changes nothing, so that a list of options may have gaps.
func TestZeroOption(t *testing.T) {
	if _, _, err := proved(t.Context(), t, numbers(1), double, Option{}); err != nil {
		t.Error(err)
	}
}

type hinted struct {
	pool string
	cost float64
}

func (h hinted) Pool() string       { return h.pool }
func (h hinted) Cost() limiter.Cost { return limiter.Cost{Requests: 1, Input: h.cost} }

type hintedByPointer struct{ hinted }

// An item's own methods say where it waits and what it draws, also where In is an
// interface that has them; an option says so over its head.
func TestHints(t *testing.T) {
	at := hinted{"mine", 7}
	check := func(name, pool, wantPool string, cost limiter.Cost, wantInput float64) {
		t.Helper()
		if pool != wantPool || cost.Requests != 1 || cost.Input != wantInput {
			t.Errorf("%s: pool %q, cost %+v", name, pool, cost)
		}
	}
	h, _ := hintsOf[hinted](configure(nil))
	check("own", h.pool(at), "mine", h.cost(at), 7)
	hp, _ := hintsOf[*hintedByPointer](configure(nil))
	check("pointer", hp.pool(&hintedByPointer{at}), "mine", hp.cost(&hintedByPointer{at}), 7)
	hi, _ := hintsOf[Pooled](configure(nil))
	check("interface", hi.pool(at), "mine", hi.cost(at), 0) // Pooled says nothing of cost
	none, _ := hintsOf[int](configure(nil))
	check("none", none.pool(1), "", none.cost(1), 0)
	over, _ := hintsOf[hinted](configure([]Option{
		WithPoolOf(func(hinted) string { return "theirs" }),
		WithCostOf(func(hinted) limiter.Cost { return limiter.Cost{Requests: 1, Input: 9} }),
	}))
	check("option", over.pool(at), "theirs", over.cost(at), 9)
}

type spent struct{ tokens int64 }

func (s *spent) Usage() provider.Usage { return provider.Usage{OutputTokens: s.tokens} }

// An answer's own usage is in the result and in the sum; a failed call's is not
// asked for (it may well be a nil pointer), and one that panics is that item's
// error.
func TestMeasuredAnswer(t *testing.T) {
	fn := func(_ context.Context, i int) (*spent, error) {
		switch i {
		case 0:
			return &spent{5}, nil
		case 1:
			return nil, Permanent(errors.New("no"))
		}
		return nil, nil //nolint:nilnil // an answer that cannot be asked
	}
	results, sum, err := proved(t.Context(), t, numbers(3), fn)
	var panicked *PanicError
	if err != nil || results[0].Usage.OutputTokens != 5 || sum.Usage.OutputTokens != 5 ||
		!errors.Is(results[1].Err, provider.Invalid) || !errors.As(results[2].Err, &panicked) {
		t.Errorf("%v %+v", err, results)
	}
}
