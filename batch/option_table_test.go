package batch

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// Where an option works; elsewhere it is ErrConfig.
type places struct{ run, newShared, withShared bool }

var (
	everywhere = places{true, true, true}
	aboutARun  = places{true, false, true} // a run's own
	aboutLanes = places{true, true, false} // what runs share
)

// optionTable has each option that there is, with where it works. nothing is the option
// without what it needs, nil or a zero value: that is ErrConfig wherever it is given.
var optionTable = map[string]struct {
	option  func(*testing.T) Option
	works   places
	nothing []Option
}{
	"WithAttemptTimeout":  {given(WithAttemptTimeout(time.Minute)), aboutARun, nil},
	"WithAlikeFailures":   {given(WithAlikeFailures(20)), aboutARun, []Option{WithAlikeFailures(-1), WithAlikeFailures(MaxAlikeFailures + 1)}},
	"WithAnsweredBefore":  {given(WithAnsweredBefore()), aboutLanes, nil},
	"WithBackoff":         {given(WithBackoff(time.Second, time.Minute)), aboutLanes, []Option{WithBackoff(time.Minute, 0), WithBackoff(-1, 0)}},
	"WithCalls":           {given(WithCalls(func(Call) {})), aboutARun, []Option{WithCalls(nil)}},
	"WithCharge":          {given(WithCharge(Charge{Rule: limiter.ChargeBoth})), aboutLanes, []Option{WithCharge(Charge{Rule: 99}), WithCharge(Charge{OutputFactor: -1})}},
	"WithClassifier":      {given(WithClassifier(func(error) Kind { return Unknown })), aboutARun, []Option{WithClassifier(nil)}},
	"WithClock":           {given(WithClock(clockwork.NewRealClock())), aboutLanes, []Option{WithClock(nil)}},
	"WithConcurrency":     {given(WithConcurrency(2)), everywhere, []Option{WithConcurrency(0)}},
	"WithControl":         {func(*testing.T) Option { return WithControl(NewControl()) }, aboutARun, []Option{WithControl(nil), WithControl(&Control{})}},
	"WithCostOf":          {given(WithCostOf(func(int) Cost { return Cost{Requests: 1} })), aboutARun, []Option{WithCostOf[int](nil)}},
	"WithDrain":           {given(WithDrain(make(chan struct{}))), aboutARun, []Option{WithDrain(nil)}},
	"WithEnds":            {given(WithEnds(func(End) {})), aboutARun, []Option{WithEnds(nil)}},
	"WithFallback":        {given(WithFallback("p", "a", "b")), aboutARun, []Option{WithFallback("p")}},
	"WithFilteredFailing": {given(WithFilteredFailing()), aboutARun, nil},
	"WithFirstAnswer":     {given(WithFirstAnswer(time.Minute)), aboutLanes, []Option{WithFirstAnswer(-1)}},
	"WithIdleLanes":       {given(WithIdleLanes(time.Minute)), aboutLanes, []Option{WithIdleLanes(0)}},
	"WithInputOrder":      {given(WithInputOrder()), aboutARun, nil},
	"WithItemTimeout":     {given(WithItemTimeout(time.Minute)), aboutARun, []Option{WithItemTimeout(-1)}},
	"WithKeepGoing":       {given(WithKeepGoing()), aboutARun, nil},
	"WithKeyOf":           {given(WithKeyOf(func(int) string { return "" })), aboutARun, []Option{WithKeyOf[int](nil)}},
	"WithLane":            {given(WithLane("", LaneConfig{Window: 2})), aboutLanes, []Option{WithLane("x", LaneConfig{Window: -1})}},
	"WithLaneDefaults":    {given(WithLaneDefaults(LaneConfig{Window: 2})), aboutLanes, []Option{WithLaneDefaults(LaneConfig{Window: -1})}},
	"WithLatencyTarget":   {given(WithLatencyTarget(time.Second)), aboutLanes, []Option{WithLatencyTarget(-1)}},
	"WithLimits":          {given(WithLimits(Limits{RPM: 6e6})), aboutLanes, []Option{WithLimits(Limits{RPM: -1})}},
	"WithLocalServer":     {given(WithLocalServer(0)), aboutLanes, []Option{WithLocalServer(-1)}},
	"WithLongWait":        {given(WithLongWait(0)), aboutLanes, []Option{WithLongWait(-1)}},
	"WithMaxAttempts":     {given(WithMaxAttempts(1)), aboutARun, []Option{WithMaxAttempts(0)}},
	"WithMaxCost":         {given(WithMaxCost(flat(1))), aboutARun, []Option{WithMaxCost(Budget[int]{})}},
	"WithMaxFailureShare": {given(WithMaxFailureShare(0.5)), aboutARun, []Option{WithMaxFailureShare(-0.1), WithMaxFailureShare(1.1), WithMaxFailureShare(math.NaN())}},
	"WithMisfitRetries":   {given(WithMisfitRetries(2, 0)), aboutARun, []Option{WithMisfitRetries(-1, 0), WithMisfitRetries(MaxMisfitRetries+1, 0), WithMisfitRetries(0, -1)}},
	"WithMaxFailures":     {given(WithMaxFailures(1)), aboutARun, []Option{WithMaxFailures(-1)}},
	"WithMostConcurrency": {given(WithMostConcurrency(DefaultConcurrency)), aboutARun, []Option{WithMostConcurrency(1), WithMostConcurrency(1 << 17)}},
	"WithMaxLanes":        {given(WithMaxLanes(9)), aboutLanes, []Option{WithMaxLanes(0)}},
	"WithMemory": {given(WithMemory(Memory{})), aboutLanes, []Option{
		WithMemory(Memory{Lanes: map[string]LaneMemory{"a": {Version: 99}}}), WithMemory(Memory{Items: map[string]ItemMemory{"a": {Failures: 1, Doubts: 2}}}),
	}},
	"WithMemorySaver":    {given(WithMemorySaver(func(Memory) error { return nil })), aboutLanes, []Option{WithMemorySaver(nil)}},
	"WithObserver":       {given(WithObserver(func(Event) {})), aboutARun, []Option{WithObserver(nil)}},
	"WithOutagePatience": {given(WithOutagePatience(time.Minute)), aboutLanes, []Option{WithOutagePatience(-1)}},
	"WithPeriods":        {given(WithPeriods(Periods{{Family: "openai", Per: time.Minute}})), aboutLanes, []Option{WithPeriods(Periods{{Family: "openai"}})}},
	"WithPlainLaw":       {given(WithPlainLaw()), aboutLanes, nil},
	"WithPool":           {given(WithPool("q", "a", "")), aboutARun, []Option{WithPool("p"), WithPool("p", "", DefaultLane)}},
	"WithPoolOf":         {given(WithPoolOf(func(int) string { return "" })), aboutARun, []Option{WithPoolOf[int](nil)}},
	"WithPrefer": {given(WithPrefer("r", time.Minute, []string{"a", "b"}, []string{"c"})), aboutARun, []Option{
		WithPrefer("p", 0), WithPrefer("p", -1, []string{"a"}), WithPrefer("p", 0, []string{"a"}, nil, []string{"b"}), WithPrefer("p", 0, []string{"a"}, []string{"a"}),
	}},
	"WithPriority":      {given(WithPriority(2)), aboutARun, []Option{WithPriority(0), WithPriority(MaxPriority + 1)}},
	"WithProgressEvery": {given(WithProgressEvery(time.Minute)), aboutARun, []Option{WithProgressEvery(0)}},
	"WithRamp":          {given(WithRamp(1, 2, 3)), aboutLanes, []Option{WithRamp(-1, 0, 0)}},
	"WithReadAhead":     {given(WithReadAhead(2)), everywhere, []Option{WithReadAhead(0)}},
	"WithGate":          {given(WithGate(func(context.Context) {})), aboutARun, []Option{WithGate(nil)}},
	"WithRetryHook":     {given(WithRetryHook(func(Retry) {})), aboutARun, []Option{WithRetryHook(nil)}},
	"WithSeed":          {given(WithSeed(1)), aboutLanes, nil},
	"WithShared":        {func(t *testing.T) Option { return WithShared(newShared(t)) }, aboutARun, []Option{WithShared(nil), WithShared(&Shared{})}},
	"WithSpill": {func(*testing.T) Option {
		prefer, spill := WithPrefer("s", 0, []string{"a"}, []string{"b"}), WithSpill("s", time.Second)
		return Option{text: spill.text, scope: spill.scope, apply: func(c *config) { prefer.apply(c); spill.apply(c) }}
	}, aboutARun, []Option{WithSpill("p", time.Second), WithSpill("p", 0)}},
	"WithWeights": {func(*testing.T) Option {
		pool, weights := WithPool("w", "a", "b"), WithWeights("w", map[string]int{"a": 3})
		return Option{text: weights.text, scope: weights.scope, apply: func(c *config) { pool.apply(c); weights.apply(c) }}
	}, aboutARun, []Option{WithWeights("p", map[string]int{"a": 3})}},
	"WithSticky": {func(*testing.T) Option {
		pool, key := WithSticky("k", time.Second, "a", "b"), WithHomeKeyOf(func(int) string { return "" })
		return Option{text: pool.text, scope: pool.scope, apply: func(c *config) { pool.apply(c); key.apply(c) }}
	}, aboutARun, []Option{WithSticky("k", time.Second, "a", "b"), WithSticky("", time.Second, "a"), WithSticky("k", 0, "a", "b"), WithSticky("k", 1)}},
	"WithHomeKeyOf": {given(WithHomeKeyOf(func(int) string { return "" })), aboutARun, []Option{WithHomeKeyOf[int](nil)}},
	"WithSummary":   {given(WithSummary(new(Summary))), aboutARun, []Option{WithSummary(nil)}},
	"WithTotal":     {given(WithTotal(1)), aboutARun, []Option{WithTotal(-1)}},
}

func given(o Option) func(*testing.T) Option { return func(*testing.T) Option { return o } }

func newShared(t *testing.T, opts ...Option) *Shared {
	t.Helper()
	s := must.Get(NewShared(opts...))(t)
	t.Cleanup(s.Close)
	return s
}

// Each option works or is ErrConfig, wherever it is given; none is ignored, and none
// panics. A new option must be in the table.
func TestEveryOptionEverywhere(t *testing.T) {
	for _, name := range exportedOptions(t) {
		row, ok := optionTable[name]
		if !ok {
			t.Errorf("%s: an option that the table does not know", name)
			continue
		}
		o := row.option(t)
		_, err := Run(t.Context(), numbers(1), double, o)
		worksOrIsRefused(t, "Run", o, err, row.works.run)
		s, err := NewShared(row.option(t))
		worksOrIsRefused(t, "NewShared", o, err, row.works.newShared)
		if err == nil {
			s.Close()
		}
		_, err = Run(t.Context(), numbers(1), double, row.option(t), WithShared(newShared(t)))
		worksOrIsRefused(t, "Run with WithShared", o, err, row.works.withShared)
		for _, nothing := range row.nothing {
			_, err := Run(t.Context(), numbers(1), never(t), nothing)
			worksOrIsRefused(t, "Run", nothing, err, false)
			_, err = NewShared(nothing)
			worksOrIsRefused(t, "NewShared", nothing, err, false)
		}
	}
	if len(optionTable) != len(exportedOptions(t)) {
		t.Error("the table has an option that there is not")
	}
}

func worksOrIsRefused(t *testing.T, where string, o Option, err error, works bool) {
	t.Helper()
	switch {
	case works && err != nil:
		t.Errorf("%s(%v): %v", where, o, err)
	case !works && !errors.Is(err, ErrConfig):
		t.Errorf("%s(%v): %v, want ErrConfig", where, o, err)
	case !works && !strings.Contains(err.Error(), o.name()) && !strings.Contains(err.Error(), "machine: ") && !strings.Contains(err.Error(), "limiter: "):
		t.Errorf("%s(%v): %v: does not name it", where, o, err)
	}
}

// Any two options mean the same in both orders, or are refused in both.
func TestPairsOfOptions(t *testing.T) {
	var opts []Option
	for _, name := range exportedOptions(t) {
		opts = append(opts, optionTable[name].option(t))
	}
	for i, a := range opts {
		for _, b := range opts[i+1:] {
			one, other := configure([]Option{a, b}), configure([]Option{b, a})
			if (one.check() == nil) != (other.check() == nil) || meaning(one) != meaning(other) {
				t.Errorf("%v, %v: %v\n%v, %v: %v", a, b, one.check(), b, a, other.check())
			}
		}
	}
}

// exportedOptions are the names of the functions that make an Option.
func exportedOptions(t *testing.T) (names []string) {
	t.Helper()
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.IsExported() && makesOption(f.Type) && !strings.HasSuffix(name, "_test.go") {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("only %v were found", names)
	}
	return names
}

func makesOption(f *ast.FuncType) bool {
	if f.Results == nil || len(f.Results.List) != 1 {
		return false
	}
	result, ok := f.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Option"
}

// What has a constructor and was not made by it is ErrConfig wherever it is asked, and
// never a panic, an endless wait, or silence.
func TestZeroSharedAndControl(t *testing.T) {
	ctx := t.Context()
	for _, s := range []*Shared{nil, {}} {
		_, status := s.Status(ctx, 1)
		_, save := s.Save(ctx)
		for name, err := range map[string]error{"Status": status, "Save": save, "Define": s.Define("x", LaneConfig{}), "ResetLane": s.ResetLane("x"), "SetLimits": s.SetLimits("x", Limits{})} {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("Shared.%s: %v", name, err)
			}
		}
		s.Close()
	}
	for _, c := range []*Control{nil, {}} {
		_, status := c.Status(ctx, 1)
		_, save := c.Save(ctx)
		for name, err := range map[string]error{
			"Status": status, "Save": save, "Pause": c.Pause(ctx), "Resume": c.Resume(ctx),
			"ResetLane": c.ResetLane(ctx, "x"), "SetLimits": c.SetLimits(ctx, "x", Limits{}),
		} {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("Control.%s: %v", name, err)
			}
		}
		c.Drain()
	}
}

// A Shared may be closed twice, and what is asked of it afterwards has an error or is
// ignored, as its documentation says.
func TestSharedIsClosed(t *testing.T) {
	s := newShared(t)
	s.Close()
	s.Close()
	if _, err := s.Status(context.Background(), 1); !errors.Is(err, coordinator.ErrClosed) {
		t.Error(err)
	}
	if err := errors.Join(s.ResetLane(""), s.SetLimits("", Limits{RPM: 1})); err != nil {
		t.Error(err)
	}
}

// permutations calls f with each order of the options.
func permutations(opts []Option, f func([]Option)) {
	if len(opts) < 2 {
		f(opts)
		return
	}
	for i := range opts {
		rest := append(append([]Option(nil), opts[:i]...), opts[i+1:]...)
		permutations(rest, func(order []Option) { f(append([]Option{opts[i]}, order...)) })
	}
}

// meaning returns the effect of a configuration as text.
func meaning(c *config) string {
	return fmt.Sprintf("%+v %+v %+v %v %v %v %v %v", c.policy, c.machine, c.limits, c.attemptTimeout, c.readAhead, c.inOrder, c.clock, c.every)
}

// Options mean the same in every order.
func TestOrderOfOptionsDoesNotMatter(t *testing.T) {
	limits := WithLimits(limiter.Limits{RPM: 60})
	breaker := machine.LaneConfig{Window: 8, Breaker: limiter.BreakerConfig{Consecutive: 3}}
	cooldown := machine.LaneConfig{Cooldown: limiter.CooldownConfig{Base: time.Minute, Max: time.Hour}}
	shared := must.Get(NewShared())(t)
	defer shared.Close()
	for _, set := range [][]Option{
		{limits, WithLaneDefaults(breaker), WithLane("x", machine.LaneConfig{Window: 2}), WithSeed(1)},
		{limits, WithLaneDefaults(cooldown), WithPlainLaw(), WithConcurrency(3)},
		{limits, WithLaneDefaults(cooldown), WithRamp(1, 2, time.Second), WithPlainLaw()},
		{WithRamp(1, 2, time.Second), WithLaneDefaults(machine.LaneConfig{Ramp: limiter.RampConfig{Initial: 1, Target: 2, Duration: time.Second}})},
		{WithLocalServer(0), WithAttemptTimeout(time.Minute), WithLaneDefaults(breaker), limits},
		{WithLocalServer(0), WithLatencyTarget(time.Second), WithLaneDefaults(machine.LaneConfig{Target: time.Second})},
		{WithPlainLaw(), WithLatencyTarget(time.Second), limits},
		{WithCharge(Charge{Rule: limiter.ChargeBoth}), WithPeriods(Periods{{Per: time.Minute}}), WithLaneDefaults(breaker), limits},
		{WithLocalServer(0), WithAttemptTimeout(time.Minute), WithLaneDefaults(machine.LaneConfig{AttemptTimeout: time.Hour})},
		{WithLocalServer(time.Second), WithAttemptTimeout(time.Minute), WithLaneDefaults(machine.LaneConfig{Local: true, Target: time.Second})},
		{WithPool("b", "x", "y"), WithFallback("a", "x", "y"), WithPool("", "z"), WithItemTimeout(time.Hour), WithMaxAttempts(2)},
		{WithShared(shared), WithReadAhead(7), WithInputOrder(), WithProgressEvery(time.Minute)},
	} {
		var first string
		permutations(set, func(order []Option) {
			c := configure(order)
			got := meaning(c)
			if first == "" {
				first = got
			}
			if err := c.check(); err != nil || got != first {
				t.Errorf("%v: %v\nmeans %s\nnot   %s", order, err, got, first)
			}
		})
	}
}

// Of one option given twice the last counts.
func TestLastOfTheSameOptionCounts(t *testing.T) {
	c := configure([]Option{WithLimits(limiter.Limits{RPM: 1}), WithConcurrency(0), WithRamp(-1, 0, 0), WithConcurrency(2), WithLimits(limiter.Limits{RPM: 2}), WithRamp(3, 0, 0)})
	if err := c.check(); err != nil || c.machine.Lane.Limits.RPM != 2 || c.limits.Concurrency != 2 || c.machine.Lane.Ramp.Initial != 3 {
		t.Errorf("%v %+v", err, c)
	}
}

// Two options that contradict each other are refused in either order, and both are named;
// so is a field that the law does not use.
func TestContradictions(t *testing.T) {
	shared := must.Get(NewShared())(t)
	defer shared.Close()
	for words, set := range map[string][]Option{
		"WithLimits, WithLaneDefaults":        {WithLimits(limiter.Limits{RPM: 60}), WithLaneDefaults(machine.LaneConfig{Limits: limiter.Limits{RPM: 6}})},
		"WithRamp, WithLaneDefaults":          {WithRamp(1, 2, 3), WithLaneDefaults(machine.LaneConfig{Ramp: limiter.RampConfig{Initial: 7}})},
		"WithRamp,WithLaneDefaults":           {WithRamp(1, 2, 3), WithLaneDefaults(machine.LaneConfig{Local: true})},
		"WithPlainLaw, WithLaneDefaults":      {WithPlainLaw(), WithLaneDefaults(machine.LaneConfig{Local: true})},
		"WithLocalServer, WithPlainLaw":       {WithLocalServer(0), WithPlainLaw()},
		"WithLocalServer, WithRamp":           {WithLocalServer(0), WithRamp(0, 0, 0)},
		"WithLocalServer, WithLaneDefaults":   {WithLocalServer(0), WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain})},
		"WithLocalServer,WithLaneDefaults":    {WithLocalServer(1), WithLaneDefaults(machine.LaneConfig{Target: 2})},
		"WithLatencyTarget, WithLaneDefaults": {WithLatencyTarget(1), WithLaneDefaults(machine.LaneConfig{Target: 2})},
		"WithLatencyTarget, WithLocalServer":  {WithLatencyTarget(1), WithLocalServer(2)},
		"WithShared, WithSeed":                {WithShared(shared), WithSeed(1)},
		"WithShared, WithClock":               {WithShared(shared), WithClock(shared.clock)},
		"WithShared, WithMemory":              {WithShared(shared), WithMemory(Memory{})},
		"WithShared, WithLaneDefaults":        {WithShared(shared), WithLaneDefaults(machine.LaneConfig{})},
		"WithShared, WithLocalServer":         {WithShared(shared), WithLocalServer(0)},
		"model law, ramp":                     {WithLaneDefaults(machine.LaneConfig{Ramp: limiter.RampConfig{Initial: 7}}), WithSeed(1)},
		"model law, cooldown, WithLane":       {WithLane("x", machine.LaneConfig{Cooldown: limiter.CooldownConfig{Base: 7}}), WithPlainLaw()},
	} {
		permutations(set, func(order []Option) {
			_, err := Run(t.Context(), numbers(1), never(t), order...)
			if !errors.Is(err, ErrConfig) {
				t.Errorf("%s: %v", words, err)
				return
			}
			for word := range strings.SplitSeq(words, ",") {
				if !strings.Contains(err.Error(), strings.TrimSpace(word)) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
		})
	}
}

// What options say of lanes is added up: nothing that was said is lost.
func TestWordsAboutLanesAreAddedUp(t *testing.T) {
	local := func(opts ...Option) LaneConfig { return configure(append(opts, WithLocalServer(0))).machine.Lane }
	for name, c := range map[string]struct{ got, want LaneConfig }{
		"half of the attempt timeout": {local(WithAttemptTimeout(time.Minute)), LaneConfig{Local: true, Target: 30 * time.Second}},
		"a minute":                    {local(), LaneConfig{Local: true, Target: time.Minute}},
		"no attempt timeout":          {local(WithAttemptTimeout(0)), LaneConfig{Local: true, Target: time.Minute}},
		"the target of the defaults":  {local(WithLaneDefaults(LaneConfig{Target: time.Second})), LaneConfig{Local: true, Target: time.Second}},
		"limits and defaults": {
			configure([]Option{WithLaneDefaults(LaneConfig{Window: 8}), WithLimits(Limits{RPM: 6})}).machine.Lane,
			LaneConfig{Window: 8, Limits: Limits{RPM: 6}},
		},
		"a ramp asks for the plain law": {
			configure([]Option{WithRamp(1, 0, 0), WithLaneDefaults(LaneConfig{Window: 8})}).machine.Lane,
			LaneConfig{Law: Plain, Window: 8, Ramp: RampConfig{Initial: 1, Target: limiter.DefaultRampTarget, Duration: limiter.DefaultRampDuration}},
		},
		"a window alone leaves the law": {configure([]Option{WithLane("x", LaneConfig{Window: 8})}).machine.Lanes["x"], LaneConfig{Law: Model, Window: 8}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}
