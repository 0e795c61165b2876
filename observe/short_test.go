package observe

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// A run that ends before its first snapshot is reported in full, with calls or without: its
// time by what held it back, its sample, and its waves.
func TestShortRuns(t *testing.T) {
	refused := errors.New("slow down")
	runs := map[string]struct {
		fn      batch.Func[int, int]
		pool    func(int) string
		failed  int
		waves   bool
		lasting time.Duration
	}{
		"no calls": {fn: anything, pool: func(int) string { panic("no pool") }, failed: 7},
		"failures of both kinds": {fn: func(context.Context, int) (int, error) { return 0, batch.Permanent(refused) }, pool: func(i int) string {
			if i < 3 {
				panic("no pool")
			}
			return ""
		}, failed: 7},
		"calls": {fn: func(context.Context, int) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 0, nil
		}, pool: func(int) string { return "" }, lasting: 100 * time.Millisecond},
		"a wave": {fn: func() batch.Func[int, int] {
			var calls atomic.Int64
			return func(context.Context, int) (int, error) {
				if calls.Add(1) == 1 {
					return 0, batch.RetryAfter(50*time.Millisecond, refused)
				}
				return 0, nil
			}
		}(), pool: func(int) string { return "" }, waves: true},
	}
	for name, of := range runs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour)
				var line []Sample
				rec, began := New(Config{OnSample: func(s Sample) { line = append(line, s) }}), time.Now()
				var sum batch.Summary
				_, _ = batch.Run(t.Context(), numbers(7), of.fn, append(rec.Options(), batch.WithPoolOf(of.pool), batch.WithSummary(&sum), batch.WithPlainLaw())...)
				p := rec.Snapshot(time.Now().Add(time.Minute))
				if p.Failed != of.failed || p.Answered != 7-of.failed || p.Cooldowns > 0 != of.waves {
					t.Errorf("%d answered, %d failed, %d waves: %+v", p.Answered, p.Failed, p.Cooldowns, sum)
				}
				if !p.Began.Equal(began) || p.At.Sub(p.Began) != sum.Ran || sum.Ran < of.lasting || !sum.At.Equal(time.Now()) {
					t.Errorf("from %v to %v, for %v; it began at %v", p.Began, p.At, sum.Ran, began)
				}
				summed := time.Duration(0)
				for _, d := range p.Ledger {
					summed += d
				}
				if summed != sum.Ran {
					t.Errorf("%v of %v are accounted for: %v", summed, sum.Ran, p.Ledger)
				}
				if len(line) != 1 || line[0].Failed != of.failed || line[0].Answered != 7-of.failed {
					t.Errorf("%+v", line)
				}
			})
		})
	}
}

// An observer's changes to the lanes of a snapshot do not reach the recorder's own.
func TestPicturesAreTheRecordersOwn(t *testing.T) {
	rec := New(Config{Observer: func(e batch.Event) {
		if e.Status != nil {
			e.Status.Lanes[0].Name, e.Status.Lanes[0].InFlight = "changed", 99
		}
	}})
	s := statusOf(8, learned("a", 1, 0))
	s.At, s.Known = start, 1
	rec.event(batch.Event{Status: &s})
	if p := rec.Snapshot(start); len(p.Lanes) != 1 || p.Lanes[0].Name != "a" || p.Lanes[0].InFlight != 0 {
		t.Errorf("%+v", p.Lanes)
	}
}

// Work that names one lane several times adds up.
func TestWorkInParts(t *testing.T) {
	rec := New(Config{Work: []Work{{"a", 3, 30}, {"b", 1, 1}, {"a", 4, 40}, {"a", -1, -1}}})
	lanes := rec.Snapshot(start).Lanes
	if len(lanes) != 2 {
		t.Fatalf("%+v", lanes)
	}
	for _, l := range lanes {
		if l.Name == "a" && (l.Left != 7 || l.LeftBytes != 70) || l.Name == "b" && (l.Left != 1 || l.LeftBytes != 1) {
			t.Errorf("%s: %d items, %d bytes", l.Name, l.Left, l.LeftBytes)
		}
	}
}

// A lane that two samples tell of has the counts of both, and what is believed of it at the
// end of the later one.
func TestLanesMerge(t *testing.T) {
	a := Sample{Span: 1, Lanes: []LaneSample{{Name: "a", Phase: "cooling", Answered: 2, Throttled: 3, Limits: map[string]float64{"tokens": 1}}}}
	b := Sample{Span: 1, Lanes: []LaneSample{{Name: "a", Phase: "flowing", Answered: 5, Throttled: 7, Limits: map[string]float64{"requests": 2}}}}
	l := a.Merge(b).Lanes[0]
	if l.Answered != 7 || l.Throttled != 10 || l.Phase != "flowing" || len(l.Limits) != 1 || l.Limits["requests"] != 2 {
		t.Errorf("%+v", l)
	}
	if a.Lanes[0].Answered != 2 || b.Lanes[0].Answered != 5 {
		t.Error("merging changed what was merged")
	}
}

// A price of less than nothing, or that is no number, is none.
func TestPricesThatAreNone(t *testing.T) {
	for _, usd := range []float64{-1e-9, math.NaN(), math.Inf(-1)} {
		rec := New(Config{Price: func(any, string, provider.Usage) (float64, bool) { return usd, true }})
		rec.countEnd(&batch.End{})
		rec.event(batch.Event{Summary: &batch.Summary{At: start, Succeeded: 1}})
		if s := rec.Snapshot(start).Spent; s.USD != 0 || s.Priced != 0 || s.Unpriced != 1 {
			t.Errorf("%v: %+v", usd, s)
		}
	}
}

// Latencies are those of all snapshots of the last half minute, and of no call when the run is
// over it is said that it is under way.
func TestLatenciesOverPictures(t *testing.T) {
	rec := New(Config{})
	s := statusOf(8, learned("a", 1, 0))
	s.Run.InFlight, s.Run.Oldest = 1, start
	for k, latency := range []time.Duration{time.Second, time.Second, 9 * time.Second} {
		rec.countCall(&batch.Call{Lane: "a", Latency: latency})
		s.At, s.Run.Ledger[1] = start.Add(time.Duration(k+1)*500*time.Millisecond), time.Duration(k+1)*500*time.Millisecond
		rec.event(batch.Event{Status: &s})
	}
	p := rec.Snapshot(s.At)
	if p.P50 > 2*time.Second || p.P95 < 8*time.Second || p.Lanes[0].P50 != p.P50 || p.Oldest != 1500*time.Millisecond {
		t.Errorf("p50 %v, p95 %v, the oldest for %v", p.P50, p.P95, p.Oldest)
	}
	rec.event(batch.Event{Summary: &batch.Summary{At: s.At, Held: s.Run.Ledger, Ran: s.Run.Ledger.Sum()}})
	if p := rec.Snapshot(s.At); p.Oldest != 0 || p.InFlight != 0 {
		t.Errorf("over, and %d under way for %v", p.InFlight, p.Oldest)
	}
}
