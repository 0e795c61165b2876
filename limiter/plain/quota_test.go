package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The zero value limits nothing.
func TestQuotaZeroValueLimitsNothing(t *testing.T) {
	var q quota
	want(t, "known", q.Known(), false)
	want(t, "take", q.Take(noon, limiter.Cost{Requests: 1e9, Input: 1e9, Output: 1e9}), true)
	w, d := q.Wait(noon, limiter.Cost{Requests: 1, Input: 1, Output: 1})
	want(t, "wait", w, 0)
	want(t, "binds", d, limiter.None)
	want(t, "level", q.Level(noon, limiter.Requests), math.Inf(1))
	want(t, "level of nothing", q.Level(noon, limiter.Dimension(200)), math.Inf(1))
}

// A call is granted in all dimensions or draws on none.
func TestQuotaTakesAllOrNothing(t *testing.T) {
	q := newQuota(limiter.Limits{RPM: 600, TPM: 60_000, InputTPM: 60_000, OutputTPM: 6000, Burst: 30 * time.Second}, noon)
	want(t, "first", q.Take(noon, limiter.Cost{Requests: 1, Input: 0, Output: 2600}), true)
	before := q
	want(t, "short of output tokens", q.Take(noon, limiter.Cost{Requests: 1, Input: 10, Output: 500}), false)
	want(t, "nothing was drawn", q, before)
	want(t, "no output needed", q.Take(noon, limiter.Cost{Requests: 1}), true)
}

// Wait names the dimension that binds: tokens may bind long before requests do.
func TestQuotaNamesWhatBinds(t *testing.T) {
	for _, c := range []struct {
		limits limiter.Limits
		cost   limiter.Cost
		binds  limiter.Dimension
		wait   time.Duration
	}{
		{limiter.Limits{RPM: 60, TPM: 6000}, limiter.Cost{Requests: 1, Input: 50, Output: 50}, limiter.Requests, time.Second},
		{limiter.Limits{RPM: 60, TPM: 6000}, limiter.Cost{Requests: 1, Input: 150, Output: 50}, limiter.Tokens, 2 * time.Second},
		{limiter.Limits{RPM: 60, InputTPM: 6000, OutputTPM: 600}, limiter.Cost{Requests: 1, Input: 200, Output: 10}, limiter.InputTokens, 2 * time.Second},
		{limiter.Limits{RPM: 60, InputTPM: 6000, OutputTPM: 600}, limiter.Cost{Requests: 1, Input: 200, Output: 30}, limiter.OutputTokens, 3 * time.Second},
		{limiter.Limits{TPM: 6000, OutputTPM: 6000}, limiter.Cost{Requests: 1, Input: 0, Output: 100}, limiter.Tokens, time.Second},
	} {
		c.limits.Burst = 10 * time.Second
		q := newQuota(c.limits, noon)
		q.Drain(noon)
		w, d := q.Wait(noon, c.cost)
		want(t, "wait", w, c.wait)
		want(t, "binds", d, c.binds)
	}
}

// When the real usage is known, tokens are put right in both directions and requests
// stay as they are.
func TestQuotaSettles(t *testing.T) {
	q := newQuota(limiter.Limits{RPM: 60, TPM: 60_000, InputTPM: 30_000, OutputTPM: 30_000, Burst: time.Minute}, noon)
	estimate := limiter.Cost{Requests: 1, Input: 1000, Output: 1000}
	q.Take(noon, estimate)
	q.Settle(noon, estimate, limiter.Cost{Requests: 7, Input: 400, Output: 3000})
	near(t, "requests", q.Level(noon, limiter.Requests), 59, 0)
	near(t, "tokens", q.Level(noon, limiter.Tokens), 60_000-3400, 0)
	near(t, "input", q.Level(noon, limiter.InputTokens), 30_000-400, 0)
	near(t, "output", q.Level(noon, limiter.OutputTokens), 30_000-3000, 0)
}

// A refund undoes a take.
func TestQuotaRefunds(t *testing.T) {
	q := newQuota(limiter.Limits{RPM: 60, TPM: 60_000, Burst: time.Minute}, noon)
	before := q
	q.Take(noon, limiter.Cost{Requests: 1, Input: 10, Output: 20})
	q.Refund(noon, limiter.Cost{Requests: 1, Input: 10, Output: 20})
	want(t, "quota", q, before)
}

// A dimension keeps its level when limits change, and a new one starts full.
func TestQuotaSetLimits(t *testing.T) {
	q := newQuota(limiter.Limits{RPM: 60, Burst: time.Minute}, noon)
	q.Take(noon, limiter.Cost{Requests: 50})
	q.SetLimits(noon, limiter.Limits{RPM: 120, InputTPM: 60_000, Burst: time.Minute})
	near(t, "requests", q.Level(noon, limiter.Requests), 10, 0)
	near(t, "input", q.Level(noon, limiter.InputTokens), 60_000, 0)
	q.SetLimits(noon, limiter.Limits{})
	want(t, "known", q.Known(), false)
	want(t, "limits", q.Limits(), limiter.Limits{})
}

// Over a long run no dimension gives out more than its burst and its refill, whatever
// was over- or underestimated on the way.
func TestQuotaNeverGrantsMoreThanItsLimits(t *testing.T) {
	for seed := range uint64(20) {
		rng := seeded(seed)
		limits := limiter.Limits{RPM: 300, TPM: 60_000, OutputTPM: 20_000}
		q, now, drawn := newQuota(limits, noon), noon, limiter.Cost{}
		for now.Before(at(600)) {
			estimate := limiter.Cost{Requests: 1, Input: rng.Float64() * 300, Output: rng.Float64() * 200}
			w, _ := q.Wait(now, estimate)
			now = now.Add(w)
			want(t, "take", q.Take(now, estimate), true)
			actual := limiter.Cost{Requests: 1, Input: rng.Float64() * 300, Output: rng.Float64() * 200}
			q.Settle(now, estimate, actual)
			drawn = limiter.Cost{Requests: drawn.Requests + 1, Input: drawn.Input + actual.Input, Output: drawn.Output + actual.Output}
		}
		minutes := now.Sub(noon).Minutes()
		for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
			most := limits.Capacity(d) + limits.PerMinute(d)*minutes + 500 // the last call's error
			if limits.PerMinute(d) > 0 && drawn.In(d) > most {
				t.Errorf("seed %d: %v: %v drawn of %v", seed, d, drawn.In(d), most)
			}
		}
	}
}

// What Wait has found holds for the Take that follows, and for nothing else: not for
// another cost, and not once a level or a limit has moved.
func TestQuotaPassIsGoodOnce(t *testing.T) {
	large := limiter.Cost{Requests: 5} // more than the bucket holds: it goes when that is full
	for name, moved := range map[string]func(q *quota){
		"taken":   func(q *quota) { q.Take(noon, large) },
		"drained": func(q *quota) { q.Drain(noon) },
		"settled": func(q *quota) { q.Settle(noon, large, limiter.Cost{Requests: 5, Input: 1e6}) },
		"limited": func(q *quota) { q.SetLimits(noon, limiter.Limits{RPM: 600, InputTPM: 60}) },
	} {
		q := newQuota(limiter.Limits{RPM: 120, InputTPM: 60}, noon)
		w, _ := q.Wait(noon, large)
		want(t, "wait", w, 0)
		moved(&q)
		want(t, name, q.Take(noon, large), false)
	}
	q := newQuota(limiter.Limits{RPM: 120, InputTPM: 60}, noon)
	q.buckets[limiter.InputTokens].Debit(noon, 30)
	q.Wait(noon, limiter.Cost{Requests: 1})
	want(t, "another cost", q.Take(noon, limiter.Cost{Requests: 1, Input: 50}), false)
}
