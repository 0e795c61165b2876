package model

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// A configured server holds exactly the bucket that the user has told, full at the start: its depth
// is the larger of one call and Burst. Calls reach it up to so many seconds late.
func configuredServer(l limiter.Limits, c limiter.Cost, late float64) func(float64, int) reply {
	var pails [dims]*pail
	var arrived, n float64
	for k, cost := range perDimension(c) {
		if per := l.PerMinute(dimensionOf[k]) / 60; per > 0 {
			pails[k] = fullPail(per, max(cost, per*measure.OrElseDuration(l.Burst, limiter.DefaultBurst).Seconds()))
		}
	}
	return func(t float64, _ int) reply {
		n++
		arrived = max(arrived, t+late*math.Mod(n*0.618, 1))
		for k, p := range pails {
			if p != nil && !p.takes(arrived, perDimension(c)[k]-1e-6) {
				return reply{kind: isRefused, after: 0.1}
			}
		}
		return reply{kind: isAnswered, after: 1, news: limiter.News{Actual: c, Measured: true}}
	}
}

// A configured limit is a ceiling: a server that enforces exactly that limit refuses nothing, and
// nearly all of the limit is used. Calls of more than a minute's budget are the exception under
// the plain law, whose debt ends at a minute.
func TestConfiguredLimitIsACeiling(t *testing.T) {
	type row struct {
		configured limiter.Limits
		cost       limiter.Cost
	}
	rows := map[string]row{}
	for _, rpm := range []float64{50.0 / 1440, 1, 3, 6, 20, 60, 600} {
		rows[fmt.Sprintf("%.4v requests", rpm)] = row{limiter.Limits{RPM: rpm}, one}
	}
	for _, percent := range []float64{1, 20, 50, 97, 150} {
		rows[fmt.Sprintf("calls of %v %%", percent)] = row{limiter.Limits{TPM: 60_000}, limiter.Cost{Requests: 1, Input: 500 * percent, Output: 100 * percent}}
	}
	for name, r := range rows {
		for _, burst := range []time.Duration{0, 10 * time.Second} {
			for law, late := range map[limiter.LawName]float64{limiter.Plain: 0, limiter.Model: 0.02} {
				t.Run(fmt.Sprint(law, ", ", name, ", burst ", burst), func(t *testing.T) {
					r.configured.Burst = burst
					w := newLawWorld(limiter.LawConfig{Law: law, Limits: r.configured}, 1, configuredServer(r.configured, r.cost, late))
					w.cost, w.places = func() limiter.Cost { return r.cost }, 100
					perCall := max(1/positiveOr(r.configured.RPM, math.Inf(1)), r.cost.Tokens()/positiveOr(r.configured.TPM, math.Inf(1)))
					minutes := max(60, 50*perCall)
					w.run(60*minutes, math.MaxInt)
					used := float64(len(w.sent)-w.refused) * perCall / minutes
					t.Logf("%d sent, %d refused, %.3f used", len(w.sent), w.refused, used)
					if law == limiter.Plain && perCall > 1 {
						return
					}
					if w.refused > 0 || used < 0.97 || used > 1.03 {
						t.Errorf("%d of %d calls were refused, and %.3f of the limit used", w.refused, len(w.sent), used)
					}
				})
			}
		}
	}
}

func positiveOr(x, otherwise float64) float64 {
	if x > 0 {
		return x
	}
	return otherwise
}

// Reports that cannot be meant draw nothing: they neither lift a configured limit nor stop its lane.
func TestSenselessReportsMoveNoLimit(t *testing.T) {
	fair := limiter.Cost{Requests: 1, Input: 500, Output: 100}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e6} {
		for name, odd := range map[string]limiter.Cost{
			"input": {Requests: 1, Input: x, Output: 100}, "output": {Requests: 1, Input: 500, Output: x}, "both": {Requests: x, Input: x, Output: x},
		} {
			bothLaws(t, limiter.LawConfig{Limits: limiter.Limits{TPM: 60_000}}, func(t *testing.T, law func() limiter.Law) {
				w := &lawWorld{law: law(), places: 10, cost: func() limiter.Cost { return fair }}
				w.serve = func(float64, int) reply {
					actual := fair
					if len(w.sent)%10 == 9 {
						actual = odd
					}
					return reply{kind: isAnswered, after: 0.1, news: limiter.News{Actual: actual, Measured: true, Cached: actual.Input}}
				}
				w.run(1800, 10_000)
				if rate := w.between(600, 1800); rate > 1000.0/540*1.05 || rate < 1000.0/600*0.97 {
					t.Errorf("%s %v: %.2f calls a second", name, x, rate)
				}
				isSane(t, w.law, w.now)
			})
		}
	}
}

// Answers that are ten times as long as was estimated draw no more than the limit on output:
// what they drew is owed, and paid back before the next call leaves.
func TestOutputLimitHoldsWhateverIsEstimated(t *testing.T) {
	actual := limiter.Cost{Requests: 1, Input: 100, Output: 1000}
	w := newLawWorld(limiter.LawConfig{Limits: limiter.Limits{OutputTPM: 10_000}}, 1, func(float64, int) reply {
		return reply{kind: isAnswered, after: 10, news: limiter.News{Actual: actual, Measured: true}}
	})
	w.places, w.cost = 32, func() limiter.Cost { return limiter.Cost{Requests: 1, Input: 100, Output: 100} }
	w.run(3600, math.MaxInt)
	for from := 0.0; from < 3600; from += 600 {
		if used := w.between(from, from+600) * 60 / 10; used > 1.05 || used < 0.95 {
			t.Errorf("%.3f of the limit is used from %v s on", used, from)
		}
	}
}

// Answers that are longer than was estimated cost no pauses once that is known: calls are then
// charged for as many tokens as are written. An estimate that is too high, as a bound is, is
// charged for in full until the answer is there.
func TestOutputEstimatesAreCorrected(t *testing.T) {
	for name, tt := range map[string]struct{ estimated, written, charged float64 }{
		"ten times as long":    {100, 1000, 1000},
		"twice as long":        {500, 1000, 1000},
		"exactly as estimated": {1000, 1000, 1000},
		"far under its bound":  {1000, 200, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLawWorld(limiter.LawConfig{Limits: limiter.Limits{OutputTPM: 10_000}}, 1, func(float64, int) reply {
				return reply{kind: isAnswered, after: 10, news: limiter.News{Actual: limiter.Cost{Requests: 1, Input: 100, Output: tt.written}, Measured: true}}
			})
			w.places, w.cost = 32, func() limiter.Cost { return limiter.Cost{Requests: 1, Input: 100, Output: tt.estimated} }
			w.run(7200, math.MaxInt)
			for i := len(w.sent) / 4; i < len(w.sent); i++ {
				if pause := w.sent[i] - w.sent[i-1]; pause > 10 { // one call each 6 s fits the limit, of the longest
					t.Fatalf("%.1f seconds without a call after %.0f s", pause, w.sent[i-1])
				}
			}
			m := w.law.(*Law)
			near(t, "charge", m.weigh(w.cost()).Output, tt.charged, tt.charged/100)
			next := New(limiter.LawConfig{Limits: limiter.Limits{OutputTPM: 10_000}}, at(w.now), nil)
			must.Do(t, next.Restore(at(w.now), m.Save(at(w.now))))
			near(t, "charge after a restart", next.weigh(w.cost()).Output, tt.charged, tt.charged/100)
		})
	}
}

// One answer moves the charge of the next by a little, be its length absurd, and by less the
// smaller its estimate was.
func TestOneAnswerCorrectsLittle(t *testing.T) {
	for name, tt := range map[string]struct{ estimate, written, longer float64 }{
		"three times as long":    {1000, 3000, 1.1},
		"absurdly long":          {1000, 1e15, 1.45},
		"of a tiny estimate":     {1, 10, 1.0005},
		"no answer to learn by":  {1000, 0, 1},
		"no estimate to correct": {0, 1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(limiter.LawConfig{}, noon, nil)
			m.correctOutput(1000, 1000)
			m.correctOutput(tt.estimate, tt.written)
			near(t, "longer", m.longer, tt.longer, 0.0001)
		})
	}
	m := New(limiter.LawConfig{}, noon, nil)
	m.correctOutput(1000, 3000)
	near(t, "longer after the first answer", m.longer, 1.1, 0.0001)
}

// A call that leaves part of its bucket is charged for what it draws, one that empties it for
// 2 % more.
func TestEarlyCharge(t *testing.T) {
	for name, tt := range map[string]struct {
		configured limiter.Limits
		of         float64 // seconds of refill that a call draws
		besides    float64 // of its cost
	}{
		"half of a usual burst":  {configured: limiter.Limits{TPM: 60_000}, of: 0.5, besides: 0},
		"the whole usual burst":  {configured: limiter.Limits{TPM: 60_000}, of: 1, besides: earlyShare},
		"most of a told burst":   {configured: limiter.Limits{TPM: 60_000, Burst: 500 * time.Millisecond}, of: 0.4, besides: 0},
		"the whole told burst":   {configured: limiter.Limits{TPM: 60_000, Burst: 500 * time.Millisecond}, of: 0.5, besides: earlyShare},
		"more than a told burst": {configured: limiter.Limits{TPM: 60_000, Burst: 500 * time.Millisecond}, of: 0.9, besides: earlyShare},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(limiter.LawConfig{Limits: tt.configured}, noon, nil)
			cost := 1000 * tt.of
			near(t, "besides", m.gauges[dimTokens].early(cost), tt.besides*cost, 1e-9)
		})
	}
}
