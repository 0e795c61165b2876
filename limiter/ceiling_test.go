package limiter

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// A told server holds exactly the bucket that the user has told, full at the start: its depth
// is the larger of one call and Burst.
func toldServer(l Limits, c Cost) func(float64, int) reply {
	var pails [dims]*pail
	for k, cost := range spread(c) {
		if per := l.PerMinute(dimensionOf[k]) / 60; per > 0 {
			pails[k] = fullPail(per, max(cost, per*orElseDuration(l.Burst, DefaultBurst).Seconds()))
		}
	}
	return func(t float64, _ int) reply {
		for k, p := range pails {
			if p != nil && !p.takes(t, spread(c)[k]-1e-6) {
				return reply{kind: isRefused, after: 0.1}
			}
		}
		return reply{kind: isAnswered, after: 1, news: News{Actual: c, Measured: true}}
	}
}

// A told limit is a ceiling: a server that holds exactly what was told refuses nothing, and
// nearly all of the limit is used. Calls of more than a minute's budget are the exception
// under the plain law, whose debt ends at a minute.
func TestToldLimitIsACeiling(t *testing.T) {
	type row struct {
		told Limits
		cost Cost
	}
	rows := map[string]row{}
	for _, rpm := range []float64{50.0 / 1440, 1, 3, 6, 20, 60, 600} {
		rows[fmt.Sprintf("%.4v requests", rpm)] = row{Limits{RPM: rpm}, one}
	}
	for _, percent := range []float64{1, 20, 50, 97, 150} {
		rows[fmt.Sprintf("calls of %v %%", percent)] = row{Limits{TPM: 60_000}, Cost{Requests: 1, Input: 500 * percent, Output: 100 * percent}}
	}
	for name, r := range rows {
		for _, burst := range []time.Duration{0, 10 * time.Second} {
			for _, law := range []LawName{Plain, Model} {
				t.Run(fmt.Sprint(law, ", ", name, ", burst ", burst), func(t *testing.T) {
					r.told.Burst = burst
					w := newLawWorld(LawConfig{Law: law, Limits: r.told}, 1, toldServer(r.told, r.cost))
					w.cost, w.places = func() Cost { return r.cost }, 100
					perCall := max(1/positiveOr(r.told.RPM, math.Inf(1)), r.cost.Tokens()/positiveOr(r.told.TPM, math.Inf(1)))
					minutes := max(60, 50*perCall)
					w.run(60*minutes, math.MaxInt)
					used := float64(len(w.sent)-w.refused) * perCall / minutes
					t.Logf("%d sent, %d refused, %.3f used", len(w.sent), w.refused, used)
					if law == Plain && perCall > 1 {
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

// Reports that cannot be meant draw nothing: they neither lift a told limit nor stop its lane.
func TestSenselessReportsMoveNoLimit(t *testing.T) {
	fair := Cost{Requests: 1, Input: 500, Output: 100}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e6} {
		for name, odd := range map[string]Cost{"input": {1, x, 100}, "output": {1, 500, x}, "both": {x, x, x}} {
			bothLaws(t, LawConfig{Limits: Limits{TPM: 60_000}}, func(t *testing.T, law func() Law) {
				w := &lawWorld{law: law(), places: 10, cost: func() Cost { return fair }}
				w.serve = func(float64, int) reply {
					actual := fair
					if len(w.sent)%10 == 9 {
						actual = odd
					}
					return reply{kind: isAnswered, after: 0.1, news: News{Actual: actual, Measured: true, Cached: actual.Input}}
				}
				w.run(1800, 10_000)
				if rate := w.between(600, 1800); rate > 1000.0/540*1.05 || rate < 1000.0/600 {
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
	actual := Cost{Requests: 1, Input: 100, Output: 1000}
	w := newLawWorld(LawConfig{Limits: Limits{OutputTPM: 10_000}}, 1, func(float64, int) reply {
		return reply{kind: isAnswered, after: 10, news: News{Actual: actual, Measured: true}}
	})
	w.places, w.cost = 32, func() Cost { return Cost{Requests: 1, Input: 100, Output: 100} }
	w.run(3600, math.MaxInt)
	for from := 0.0; from < 3600; from += 600 {
		if used := w.between(from, from+600) * 60 / 10; used > 1.05 || used < 0.95 {
			t.Errorf("%.3f of the limit is used from %v s on", used, from)
		}
	}
}
