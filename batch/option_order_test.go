package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

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
	shared, err := NewShared()
	if err != nil {
		t.Fatal(err)
	}
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
	shared, err := NewShared()
	if err != nil {
		t.Fatal(err)
	}
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
