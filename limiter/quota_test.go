package limiter

import (
	"errors"
	"math"
	"testing"
	"time"
)

// The zero value limits nothing.
func TestQuotaZeroValueLimitsNothing(t *testing.T) {
	var q Quota
	want(t, "known", q.Known(), false)
	want(t, "take", q.Take(noon, Cost{1e9, 1e9, 1e9}), true)
	w, d := q.Wait(noon, Cost{1, 1, 1})
	want(t, "wait", w, 0)
	want(t, "binds", d, None)
	want(t, "level", q.Level(noon, Requests), math.Inf(1))
	want(t, "level of nothing", q.Level(noon, Dimension(200)), math.Inf(1))
}

// A call is granted in all dimensions or draws on none.
func TestQuotaTakesAllOrNothing(t *testing.T) {
	q := NewQuota(Limits{RPM: 600, TPM: 60_000, InputTPM: 60_000, OutputTPM: 6000, Burst: 30 * time.Second}, noon)
	want(t, "first", q.Take(noon, Cost{1, 0, 2600}), true)
	before := q
	want(t, "short of output tokens", q.Take(noon, Cost{1, 10, 500}), false)
	want(t, "nothing was drawn", q, before)
	want(t, "no output needed", q.Take(noon, Cost{Requests: 1}), true)
}

// Wait names the dimension that binds: tokens may bind long before requests do.
func TestQuotaNamesWhatBinds(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		cost   Cost
		binds  Dimension
		wait   time.Duration
	}{
		{Limits{RPM: 60, TPM: 6000}, Cost{1, 50, 50}, Requests, time.Second},
		{Limits{RPM: 60, TPM: 6000}, Cost{1, 150, 50}, Tokens, 2 * time.Second},
		{Limits{RPM: 60, InputTPM: 6000, OutputTPM: 600}, Cost{1, 200, 10}, InputTokens, 2 * time.Second},
		{Limits{RPM: 60, InputTPM: 6000, OutputTPM: 600}, Cost{1, 200, 30}, OutputTokens, 3 * time.Second},
		{Limits{TPM: 6000, OutputTPM: 6000}, Cost{1, 0, 100}, Tokens, time.Second},
	} {
		c.limits.Burst = 10 * time.Second
		q := NewQuota(c.limits, noon)
		q.Drain(noon)
		w, d := q.Wait(noon, c.cost)
		want(t, "wait", w, c.wait)
		want(t, "binds", d, c.binds)
	}
}

// When the real usage is known, tokens are put right in both directions and requests
// stay as they are.
func TestQuotaSettles(t *testing.T) {
	q := NewQuota(Limits{RPM: 60, TPM: 60_000, InputTPM: 30_000, OutputTPM: 30_000, Burst: time.Minute}, noon)
	estimate := Cost{1, 1000, 1000}
	q.Take(noon, estimate)
	q.Settle(noon, estimate, Cost{7, 400, 3000})
	near(t, "requests", q.Level(noon, Requests), 59, 0)
	near(t, "tokens", q.Level(noon, Tokens), 60_000-3400, 0)
	near(t, "input", q.Level(noon, InputTokens), 30_000-400, 0)
	near(t, "output", q.Level(noon, OutputTokens), 30_000-3000, 0)
}

// A refund undoes a take.
func TestQuotaRefunds(t *testing.T) {
	q := NewQuota(Limits{RPM: 60, TPM: 60_000, Burst: time.Minute}, noon)
	before := q
	q.Take(noon, Cost{1, 10, 20})
	q.Refund(noon, Cost{1, 10, 20})
	want(t, "quota", q, before)
}

// A dimension keeps its level when limits change, and a new one starts full.
func TestQuotaSetLimits(t *testing.T) {
	q := NewQuota(Limits{RPM: 60, Burst: time.Minute}, noon)
	q.Take(noon, Cost{Requests: 50})
	q.SetLimits(noon, Limits{RPM: 120, InputTPM: 60_000, Burst: time.Minute})
	near(t, "requests", q.Level(noon, Requests), 10, 0)
	near(t, "input", q.Level(noon, InputTokens), 60_000, 0)
	q.SetLimits(noon, Limits{})
	want(t, "known", q.Known(), false)
	want(t, "limits", q.Limits(), Limits{})
}

// A bucket holds a second of refill by default: at least one request or token, never more
// than a minute.
func TestLimitsCapacity(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		d      Dimension
		holds  float64
	}{
		{Limits{RPM: 600}, Requests, 10},
		{Limits{RPM: 30}, Requests, 1},
		{Limits{RPM: 0.5}, Requests, 1},
		{Limits{RPM: 600, Burst: MaxBurst}, Requests, 600},
		{Limits{TPM: 6_000_000}, Tokens, 100_000},
		{Limits{TPM: 60_000}, Tokens, 1000},
		{Limits{InputTPM: 3000}, InputTokens, 50},
		{Limits{InputTPM: 30}, InputTokens, 1},
		{Limits{OutputTPM: 60_000, Burst: 30 * time.Second}, OutputTokens, 30_000},
		{Limits{}, Tokens, 0},
		{Limits{RPM: 1}, None, 0},
	} {
		near(t, c.d.String(), c.limits.Capacity(c.d), c.holds, 1e-9)
		if c.holds > 0 {
			q := NewQuota(c.limits, noon)
			near(t, "level", q.Level(noon, c.d), c.holds, 1e-9)
		}
	}
}

// Limits that cannot be meant are refused, each by the name of its field.
func TestLimitsValidate(t *testing.T) {
	for _, good := range []Limits{{}, {RPM: 1, TPM: 2, InputTPM: 3, OutputTPM: 0.5, Burst: MaxBurst}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for text, bad := range map[string]Limits{
		"limiter: limits: requests per minute: -1 is not a finite number of 0 or more":        {RPM: -1},
		"limiter: limits: tokens per minute: NaN is not a finite number of 0 or more":         {TPM: math.NaN()},
		"limiter: limits: input tokens per minute: +Inf is not a finite number of 0 or more":  {InputTPM: math.Inf(1)},
		"limiter: limits: output tokens per minute: -Inf is not a finite number of 0 or more": {OutputTPM: math.Inf(-1)},
		"limiter: limits: burst: 1m1s is not in 0..1m0s":                                      {Burst: 61 * time.Second},
		"limiter: limits: burst: -1s is not in 0..1m0s":                                       {Burst: -time.Second},
	} {
		err := bad.Validate()
		if !errors.Is(err, ErrLimits) || err.Error() != text {
			t.Errorf("%+v: got %v, want %s", bad, err, text)
		}
	}
}

// Only a positive number limits; a burst alone does not.
func TestLimitsZero(t *testing.T) {
	want(t, "zero", Limits{}.Zero(), true)
	want(t, "burst", Limits{Burst: time.Second}.Zero(), true)
	want(t, "negative", Limits{RPM: -1}.Zero(), true)
	for _, l := range []Limits{{RPM: 1}, {TPM: 1}, {InputTPM: 1}, {OutputTPM: 1}} {
		want(t, "limited", l.Zero(), false)
	}
}

// A cost's tokens are those of both kinds; a difference is taken part by part.
func TestCost(t *testing.T) {
	c := Cost{1, 20, 300}
	want(t, "tokens", c.Tokens(), 320)
	want(t, "minus", c.Minus(Cost{1, 30, 100}), Cost{0, -10, 200})
}

// Dimensions have names that can stand in a sentence.
func TestDimensionNames(t *testing.T) {
	for d, name := range []string{"none", "requests", "tokens", "input tokens", "output tokens", "dimension(5)"} {
		want(t, "name", Dimension(d).String(), name)
	}
}

// Over a long run no dimension gives out more than its burst and its refill, whatever
// was over- or underestimated on the way.
func TestQuotaNeverGrantsMoreThanItsLimits(t *testing.T) {
	for seed := range uint64(20) {
		rng := seeded(seed)
		limits := Limits{RPM: 300, TPM: 60_000, OutputTPM: 20_000}
		q, now, drawn := NewQuota(limits, noon), noon, Cost{}
		for now.Before(at(600)) {
			estimate := Cost{1, rng.Float64() * 300, rng.Float64() * 200}
			w, _ := q.Wait(now, estimate)
			now = now.Add(w)
			want(t, "take", q.Take(now, estimate), true)
			actual := Cost{1, rng.Float64() * 300, rng.Float64() * 200}
			q.Settle(now, estimate, actual)
			drawn = Cost{drawn.Requests + 1, drawn.Input + actual.Input, drawn.Output + actual.Output}
		}
		minutes := now.Sub(noon).Minutes()
		for d := Requests; d <= OutputTokens; d++ {
			most := limits.Capacity(d) + limits.PerMinute(d)*minutes + 500 // the last call's error
			if limits.PerMinute(d) > 0 && drawn.of(d) > most {
				t.Errorf("seed %d: %v: %v drawn of %v", seed, d, drawn.of(d), most)
			}
		}
	}
}

// What Wait has found holds for the Take that follows, and for nothing else: not for
// another cost, and not once a level or a limit has moved.
func TestQuotaPassIsGoodOnce(t *testing.T) {
	large := Cost{Requests: 5} // more than the bucket holds: it goes when that is full
	for name, moved := range map[string]func(q *Quota){
		"taken":   func(q *Quota) { q.Take(noon, large) },
		"drained": func(q *Quota) { q.Drain(noon) },
		"settled": func(q *Quota) { q.Settle(noon, large, Cost{Requests: 5, Input: 1e6}) },
		"limited": func(q *Quota) { q.SetLimits(noon, Limits{RPM: 600, InputTPM: 60}) },
	} {
		q := NewQuota(Limits{RPM: 120, InputTPM: 60}, noon)
		w, _ := q.Wait(noon, large)
		want(t, "wait", w, 0)
		moved(&q)
		want(t, name, q.Take(noon, large), false)
	}
	q := NewQuota(Limits{RPM: 120, InputTPM: 60}, noon)
	q.buckets[InputTokens].Debit(noon, 30)
	q.Wait(noon, Cost{Requests: 1})
	want(t, "another cost", q.Take(noon, Cost{Requests: 1, Input: 50}), false)
}
