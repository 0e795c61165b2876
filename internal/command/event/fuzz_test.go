package event

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// Every word of the ledger has its words here, and a noun.
func TestEveryBoundHasWords(t *testing.T) {
	for b := machine.Bound(1); int(b) < machine.Bounds; b++ {
		by := b
		p := steady(by)
		s := &scene{snapshot: &p, context: &here}
		if _, ok := reasons[by]; !ok {
			t.Errorf("%s has no words", by)
		}
		if w := s.sentenceOf(by); len(w.text) == 0 || len(w.short) == 0 || len(w.lane) == 0 {
			t.Errorf("%s: %+v", by, w)
		}
		if s.boundNoun(by) == "" {
			t.Errorf("%s has no noun", by)
		}
	}
}

// wild are names, messages and numbers as nobody means them.
type wild struct{ *rand.Rand }

func (w wild) text() string {
	texts := []string{
		"", "openai/gpt-4o", "模型/模型模型模型模型模型模型模型模型模型模型模型模型", "\x1b[2J\u202e\r\n\t", strings.Repeat("long ", 800),
		"/", "a/", "\xff\xfe", "e\u0301\u200d👩\u200d🚀", "openai: server: 503: \x1b]0;gone\a",
	}
	return texts[w.IntN(len(texts))]
}

func (w wild) number() float64 {
	numbers := []float64{0, 1, 0.5, 600. / 60, 1e-9, 1e18, -1, -1e18, math.Inf(1), math.NaN(), w.Float64(), 1e4 * w.Float64()}
	return numbers[w.IntN(len(numbers))]
}

func (w wild) whole() int { return []int{0, 1, 2, 64, 1024, 100_000, 1 << 40, -1}[w.IntN(8)] }

func (w wild) span() time.Duration {
	return []time.Duration{0, time.Millisecond, time.Second, 95 * time.Second, time.Hour, 1000 * time.Hour, math.MaxInt64 / 4, -time.Second}[w.IntN(8)]
}

func (w wild) moment() time.Time {
	if w.IntN(3) == 0 {
		return time.Time{}
	}
	return noon.Add(w.span())
}

func (w wild) bound() limiter.Bound {
	return limiter.Bound(w.IntN(len(observe.Ledger{})))
}

func (w wild) lane() observe.Lane {
	l := observe.Lane{NextBound: w.bound(), Speed: w.number(), P50: w.span(), P95: w.span(), Left: w.whole()}
	l.Name, l.Phase, l.Reason, l.Until = w.text(), machine.Phase(w.IntN(5)), machine.Reason(w.IntN(12)), w.moment()
	l.Parked, l.Wave, l.Window, l.Failures, l.LaneStatus.Latency = w.whole(), w.whole(), w.whole(), w.whole(), w.span()
	l.Errors, l.Slowed = w.number(), w.number()
	l.Draw = limiter.Cost{Requests: 1, Input: w.number(), Output: w.number()}
	if w.IntN(2) == 0 {
		l.Cause = errors.New(w.text())
	}
	v := &l.View
	v.At, v.Search, v.Over, v.Cap, v.Window, v.Binds.By = noon, w.number(), w.number(), w.whole(), w.whole(), limiter.Bound(w.IntN(limiter.Bounds+2))
	v.Hold, v.Ramp, v.Trial, v.Drought, v.Probed = w.moment(), w.moment(), w.moment(), w.moment(), w.IntN(4)
	v.Chance, v.ChanceSeen, v.Lied = w.Float64(), w.Float64()*10, math.Abs(w.Float64())
	for k := range v.Limits {
		v.Limits[k] = limiter.LimitView{Source: limiter.Source(w.IntN(4)), Refill: w.number(), Level: w.number(), Others: w.number()}
		l.Used[k] = w.number()
	}
	return l
}

func (w wild) snapshot() observe.Snapshot {
	p := observe.Snapshot{
		At: noon, Began: noon.Add(-w.span()), State: observe.State(w.IntN(5)), Total: w.whole(), Before: w.whole(), Answered: w.whole(), Failed: w.whole(),
		Calls: w.whole(), Cooldowns: w.whole(), Broke: w.whole(), Truncated: w.whole(), Concurrency: w.whole(), InFlight: w.whole(), Oldest: w.span(), Slowest: w.span(),
		Waiting: w.whole(), Parked: w.whole(), Delayed: w.whole(), FirstDue: w.moment(), Speed: w.number(), P50: w.span(), P95: w.span(),
		Bottleneck: observe.Bottleneck{By: w.bound(), Share: w.number(), Second: w.bound(), SecondShare: w.number(), Next: w.bound(), Factor: w.number(), Then: w.bound()},
		Allowed:    w.number(), Efficiency: w.number(), OfLanes: w.whole(), Open: w.whole(),
		Ends:  observe.Forecast{Low: w.span(), Likely: w.span(), High: w.span(), Known: w.IntN(2) == 0, Why: []string{"early", "total", "outage", "over", ""}[w.IntN(5)], Left: w.span(), Lane: w.text(), Others: w.span()},
		InAll: observe.Estimate{Likely: w.Float64() * 1e9, PlusMinus: w.Float64() * 1e6, Known: w.IntN(2) == 0},
	}
	p.Spent.USD, p.Spent.Priced, p.Spent.Unpriced = w.Float64()*1e7, w.IntN(3), w.whole()
	p.Spent.InputTokens, p.Spent.OutputTokens = int64(w.whole()), int64(w.whole())
	for range w.IntN(4) {
		p.Lanes = append(p.Lanes, w.lane())
		p.Bottleneck.Lane = p.Lanes[0].Name
	}
	for range w.IntN(12) {
		p.Failures = append(p.Failures, observe.Failure{Kind: w.text(), Code: w.text(), Count: w.whole(), Examples: []observe.Example{{ID: w.text(), Message: w.text()}}})
	}
	return p
}

// Whatever a snapshot holds, no row is too long, none steers a terminal, and the event is
// JSON.
func FuzzWordsFit(f *testing.F) {
	for seed := range uint64(2000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := wild{rand.New(rand.NewPCG(seed, 0))}
		p := w.snapshot()
		e := Of(&p, Context{Input: w.text(), Output: w.text(), Provider: w.text(), Timeout: w.span(), Zone: time.UTC, Draining: w.text(), Latest: w.text(), Simulated: w.IntN(2) == 0})
		fits(t, &e)
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	})
}
