package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errSlow = errors.New("slow down")

// aRun runs 300 items with refusals, breaks and failures, on two lanes and under a cap, and
// returns its stand at the end, with its summary.
func aRun(t *testing.T, lanes int, also ...batch.Option) (Stand, batch.Summary) {
	t.Helper()
	rec := observe.New(observe.Config{Total: 300, Price: func(in any, _ string, u provider.Usage) (float64, bool) {
		return float64(u.InputTokens) / 1000, *in.(*int)%2 == 0
	}})
	items := make([]int, 300)
	for i := range items {
		items[i] = i
	}
	tried := make([]int, len(items))
	var sum batch.Summary
	call := func(ctx context.Context, i int) (int, error) {
		time.Sleep(time.Duration(20+i%50) * time.Millisecond)
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 100, OutputTokens: 10, CachedTokens: 3})
		tried[i]++
		switch {
		case i%50 == 7:
			return 0, &provider.Error{Kind: provider.Invalid, Status: 400}
		case i%40 == 5 && tried[i] == 1:
			return 0, batch.RetryAfter(50*time.Millisecond, errSlow)
		case i%60 == 9 && tried[i] == 1:
			return 0, &provider.Error{Kind: provider.Server, Status: 500}
		}
		return i, nil
	}
	opts := append(rec.Options(), batch.WithConcurrency(8), batch.WithPoolOf(func(i int) string { return fmt.Sprintf("p/%02d", i%lanes) }),
		batch.WithSummary(&sum))
	_, _ = batch.Run(context.Background(), slices.Values(items), call, append(opts, also...)...)
	stand := Stand{Pending: 3}
	stand.Snapshot, stand.Times = rec.SnapshotAndTimes(time.Now())
	return stand, sum
}

// The counters of a run equal its summary, and the sums over their labels do, too.
func TestCountersEqualTheSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stand, sum := aRun(t, 2, batch.WithPlainLaw())
		figures := gather(t, stand)
		for name, want := range map[string]float64{
			`headrace_items_total{result="succeeded"}`:                 float64(sum.Succeeded),
			`headrace_items_total{result="failed"}`:                    float64(sum.Failed),
			`headrace_items_total{result="not_run"}`:                   float64(sum.NotRun),
			`headrace_items_failed_total`:                              float64(sum.Failed),
			`headrace_calls_total`:                                     float64(sum.Counters.Calls),
			`headrace_calls_total{outcome="throttled"}`:                float64(sum.Counters.Throttled),
			`headrace_items_redistributed_total`:                       float64(sum.Counters.Redistributed),
			`headrace_tokens_total{type="input"}`:                      float64(sum.Usage.InputTokens),
			`headrace_tokens_total{type="output"}`:                     float64(sum.Usage.OutputTokens),
			`headrace_run_bound_seconds_total`:                         sum.Ran.Seconds(),
			`headrace_call_duration_seconds_count`:                     float64(sum.Counters.Calls),
			`headrace_call_duration_seconds_count{outcome="answered"}`: float64(sum.Succeeded),
			`headrace_calls_total{outcome="answered"}`:                 float64(sum.Succeeded),
			`headrace_item_queue_seconds_count`:                        300,
			`headrace_journal_pending_lines`:                           3,
			`headrace_calls_in_flight_max`:                             8,
			`headrace_run_items`:                                       300,
			`headrace_calls_in_flight`:                                 0,
			`headrace_items_held`:                                      0,
		} {
			if got := figures.sum(name); got < want-1e-6 || got > want+1e-6 {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if sum.Failed == 0 || sum.Counters.Throttled == 0 || sum.Counters.Redistributed == 0 {
			t.Errorf("the run had too little trouble: %+v", sum)
		}
	})
}

// Every metric of the list is shown. Prometheus' own rules judge it in tests/peers.
func TestEveryMetricIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stand, _ := aRun(t, 2, batch.WithLimits(batch.Limits{RPM: 60000}), batch.WithMaxCost(batch.Budget[int]{
			Max:     5,
			Reserve: func(int, string, float64) (float64, bool) { return 0.001, true },
			Cost:    func(int, string, provider.Usage) (float64, bool) { return 0.001, true },
		}))
		stand.Ends = observe.Forecast{Known: true, Low: 1, Likely: 2, High: 3}
		text := textOf(NewCollector(func() (Stand, bool) { return stand, true }))
		for _, f := range families {
			if !strings.Contains(text, fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n%s", f.Name, f.Help, f.Name, f.Kind, f.Name)) {
				t.Errorf("%s: no figure", f.Name)
			}
		}
	})
}

// textOf returns the page of one source.
func textOf(source exposition.Source) string {
	var page exposition.Page
	source.Collect(&page)
	return string(page.AppendText(nil))
}

// seriesOf returns how many series a source shows, a histogram as one.
func seriesOf(source exposition.Source) int {
	var page exposition.Page
	source.Collect(&page)
	return page.Series()
}

// A run with many more lanes than have a name shows a bounded number of series.
func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stand, _ := aRun(t, 100)
		c := NewCollector(func() (Stand, bool) { return stand, true })
		if n := seriesOf(c); n > 100*(observe.MaxLanes+2) {
			t.Errorf("%d series", n)
		}
		one, _ := aRun(t, 1)
		c = NewCollector(func() (Stand, bool) { return one, true })
		if n := seriesOf(c); n > 350 {
			t.Errorf("%d series with one lane", n)
		}
	})
}

// Before the run begins, only the build is shown.
func TestNothingIsKnownBeforeTheRun(t *testing.T) {
	c := NewCollector(func() (Stand, bool) { return Stand{}, false })
	if n := seriesOf(c); n != 1 || !strings.Contains(textOf(c), "\nheadrace_build_info{") {
		t.Errorf("%d series", n)
	}
}

// figures are what a collector shows: name and labels, and the value.
type figures map[string]float64

// gather collects a stand. Each line stands once.
func gather(t *testing.T, stand Stand) figures {
	t.Helper()
	of := figures{}
	for line := range strings.Lines(textOf(NewCollector(func() (Stand, bool) { return stand, true }))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		name := line[:at]
		if !strings.Contains(name, "{") {
			name += "{"
		}
		if _, twice := of[name]; twice {
			t.Errorf("%s stands twice", name)
		}
		of[name] = must.Get(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64))(t)
	}
	return of
}

// sum adds up the figures of a name, or of those that have a label besides.
func (f figures) sum(name string) (sum float64) {
	name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	for key, v := range f {
		if strings.HasPrefix(key, name+"{") && strings.Contains(key, label) {
			sum += v
		}
	}
	return sum
}

// The page about metrics lists each of them, with its help.
func TestThePageListsEachMetric(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/metrics.md"))(t)
	for _, f := range families {
		row := fmt.Sprintf("| `%s` | %s | %s |", f.Name, strings.Join(f.Labels, ", "), f.Help)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no row %q", row)
		}
	}
}
