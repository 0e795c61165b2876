package otelheadrace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// watched holds the output of a run.
type watched struct {
	metrics map[string]metricdata.Metrics
	spans   tracetest.SpanStubs
	sum     batch.Summary
	calls   int // that the program's own OnCall has seen
}

// value returns the value of a series; -1: there is none.
func (w *watched) value(name string, of ...attribute.KeyValue) float64 {
	var points []metricdata.DataPoint[float64]
	switch d := w.metrics[name].Data.(type) {
	case metricdata.Sum[float64]:
		points = d.DataPoints
	case metricdata.Gauge[float64]:
		points = d.DataPoints
	}
	want := attribute.NewSet(of...)
	for _, p := range points {
		if p.Attributes.Equals(&want) {
			return p.Value
		}
	}
	return -1
}

// call refuses each fifth item once, and fails the items 10 and 11 for good.
func call(tries map[int]int) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		time.Sleep(100 * time.Millisecond)
		tries[n]++
		switch {
		case n == 10 || n == 11:
			return 0, &provider.Error{Kind: provider.Invalid, Status: 400, Message: "a secret prompt is too long"}
		case n%5 == 0 && tries[n] == 1:
			return 0, &provider.Error{Kind: provider.Throttled, Status: 429, Message: "slow down"}
		}
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 10, OutputTokens: 3})
		return n, nil
	}
}

// watch runs 40 items in virtual time, and collects once before the run and once after it.
func watch(t *testing.T, cfg Config) *watched {
	w := &watched{metrics: map[string]metricdata.Metrics{}}
	reader := metric.NewManualReader()
	exporter := tracetest.NewInMemoryExporter()
	cfg.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
	cfg.TracerProvider = trace.NewTracerProvider(trace.WithSyncer(exporter))
	synctest.Test(t, func(t *testing.T) {
		run, err := Watch(t.Context(), cfg, observe.Config{Total: 40, OnCall: func(batch.Call) { w.calls++ }, Price: func(any, string, provider.Usage) (float64, bool) { return 0.25, true }})
		if err != nil {
			t.Fatal(err)
		}
		var before metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &before); err != nil || len(before.ScopeMetrics) > 0 {
			t.Errorf("before the run: %v, %+v", err, before)
		}
		items := make([]int, 40)
		for k := range items {
			items[k] = k
		}
		_, err = batch.Run(t.Context(), slices.Values(items), call(map[int]int{}), append(run.Options(), batch.WithConcurrency(1), batch.WithSummary(&w.sum), batch.WithPoolOf(func(int) string { return "openai/gpt-4o-mini" }))...)
		if err != nil {
			t.Error(err)
		}
		var after metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &after); err != nil {
			t.Error(err)
		}
		for _, s := range after.ScopeMetrics {
			for _, m := range s.Metrics {
				w.metrics[m.Name] = m
			}
		}
		if err := run.End(errors.New("an error of the run")); err != nil {
			t.Error(err)
		}
		if err := reader.Collect(t.Context(), &before); err != nil {
			t.Error(err)
		}
		for _, s := range before.ScopeMetrics {
			for _, m := range s.Metrics {
				if strings.HasPrefix(m.Name, "headrace") {
					t.Errorf("after the end %s is still shown", m.Name)
				}
			}
		}
	})
	w.spans = exporter.GetSpans()
	return w
}

// The metrics equal the summary of the run.
func TestMetricsEqualTheSummary(t *testing.T) {
	w := watch(t, Config{Provider: "openai"})
	lane := laneKey.String("openai/gpt-4o-mini")
	for _, of := range []struct {
		got, want float64
	}{
		{w.value("headrace.items", lane, resultKey.String("succeeded")), float64(w.sum.Succeeded)},
		{w.value("headrace.items", lane, resultKey.String("failed")), 2},
		{w.value("headrace.items.failed", kindKey.String("invalid")), 2},
		{w.value("headrace.calls", lane, outcomeKey.String("answered")), 38},
		{w.value("headrace.calls", lane, outcomeKey.String("throttled")), float64(w.sum.Counters.Throttled)},
		{w.value("headrace.calls", lane, outcomeKey.String("failed")), 2},
		{w.value("headrace.tokens", lane, typeKey.String("input")), 380},
		{w.value("headrace.cost.usd", lane), 9.5},
		{w.value("headrace.run.items"), 40},
		{w.value("headrace.calls.in_flight_max"), 1},
		{float64(w.calls), float64(w.sum.Counters.Calls)},
	} {
		if of.got != of.want || of.want == 0 {
			t.Errorf("got %v, want %v", of.got, of.want)
		}
	}
	total := 0.0
	for _, p := range w.metrics["headrace.run.bound"].Data.(metricdata.Sum[float64]).DataPoints {
		total += p.Value
	}
	if diff := total - w.sum.Elapsed.Seconds(); diff < -1e-6 || diff > 1e-6 {
		t.Errorf("what held it back is %v s in all, and the run took %v", total, w.sum.Elapsed)
	}
}

// The conventions' histograms count each call, by its kind of failure, and the tokens of answers.
func TestConventions(t *testing.T) {
	w := watch(t, Config{Provider: "openai", Server: "api.openai.com"})
	d := w.metrics[durationName].Data.(metricdata.Histogram[float64])
	counts := map[string]uint64{}
	for _, p := range d.DataPoints {
		kind, _ := p.Attributes.Value(errorKey)
		counts[kind.AsString()] = p.Count
		for key, want := range map[attribute.Key]string{operationKey: "chat", providerKey: "openai", modelKey: "gpt-4o-mini", serverKey: "api.openai.com"} {
			if v, _ := p.Attributes.Value(key); v.AsString() != want {
				t.Errorf("%s is %q, want %q", key, v.AsString(), want)
			}
		}
		if len(p.Bounds) != 14 || p.Bounds[0] != 0.01 || p.Bounds[13] != 81.92 {
			t.Errorf("%v", p.Bounds)
		}
	}
	if counts[""] != 38 || counts["invalid"] != 2 || counts["throttled"] != w.sum.Counters.Throttled || len(counts) != 3 {
		t.Errorf("%v", counts)
	}
	for _, p := range w.metrics[tokensName].Data.(metricdata.Histogram[int64]).DataPoints {
		kind, _ := p.Attributes.Value(tokenTypeKey)
		if want := map[string]int64{"input": 380, "output": 114}[kind.AsString()]; p.Sum != want || want == 0 {
			t.Errorf("%s: %d, want %d", kind.AsString(), p.Sum, want)
		}
	}
	if w.metrics[durationName].Unit != "s" || w.metrics[tokensName].Unit != "{token}" {
		t.Error("the units are not those of the conventions")
	}
}

// A run is a span, and with CallSpans each call is one in it: as long as the call was, with its failure, and never a prompt.
func TestSpans(t *testing.T) {
	if w := watch(t, Config{}); len(w.spans) != 1 || w.spans[0].Name != "headrace.run" || w.spans[0].Status.Code != codes.Error {
		t.Errorf("%+v", w.spans)
	}
	w := watch(t, Config{CallSpans: true, Lane: func(lane string) Called {
		return Called{Provider: "aws.bedrock", Model: "from " + lane, Operation: "embeddings"}
	}})
	root := w.spans[len(w.spans)-1]
	if len(w.spans) != 1+int(w.sum.Counters.Calls) || root.Name != "headrace.run" {
		t.Fatalf("%d spans of %d calls", len(w.spans), w.sum.Counters.Calls)
	}
	failed, again := 0, 0
	for _, s := range w.spans[:len(w.spans)-1] {
		of := attribute.NewSet(s.Attributes...)
		if s.Name != "embeddings from openai/gpt-4o-mini" || s.Parent.SpanID() != root.SpanContext.SpanID() || s.EndTime.Sub(s.StartTime) != 100*time.Millisecond {
			t.Fatalf("%+v", s)
		}
		if s.Status.Code == codes.Error {
			failed++
		}
		if v, _ := of.Value(spanAgainKey); v.AsBool() {
			again++
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, "secret") {
			t.Errorf("a prompt is in %s", text)
		}
	}
	if failed != 2+int(w.sum.Counters.Throttled) || again != int(w.sum.Counters.Throttled) || again == 0 {
		t.Errorf("%d failed, %d again", failed, again)
	}
	of := attribute.NewSet(root.Attributes...)
	if v, _ := of.Value(spanFailedKey); v.AsInt64() != 2 {
		t.Errorf("%+v", root.Attributes)
	}
}

// An exporter to Prometheus gives our metrics the names that /metrics has, and the limits and their sources have the same words.
func TestNamesAreThoseOfPrometheus(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, Config{})
	if len(w.metrics) < 20 {
		t.Errorf("%d metrics", len(w.metrics))
	}
	for _, m := range w.metrics {
		name := strings.ReplaceAll(m.Name, ".", "_")
		name += map[string]string{"s": "_seconds", "1": "_ratio"}[m.Unit]
		if _, isSum := m.Data.(metricdata.Sum[float64]); isSum {
			name += "_total"
		}
		if !strings.Contains(string(page), "| `"+name+"` |") || m.Description == "" {
			t.Errorf("%s would be %s, which is not in docs/metrics.md", m.Name, name)
		}
	}
	schema, err := os.ReadFile("../../docs/progress.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Clone(limitWords[:])
	for _, v := range []limiter.LimitView{{Source: limiter.Seen}, {Source: limiter.Seen, Said: true}, {Source: limiter.Learned}, {Source: limiter.Configured}} {
		words = append(words, sourceWord(&v))
	}
	for _, word := range words {
		if !strings.Contains(string(schema), `"`+word+`"`) {
			t.Errorf("%s is not in docs/progress.schema.json", word)
		}
	}
}

// The global providers do nothing unless a program sets others: a run goes on as if nobody watched.
func TestGlobalProviders(t *testing.T) {
	run, err := Watch(t.Context(), Config{CallSpans: true}, observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	results, err := batch.Run(t.Context(), slices.Values([]int{1, 2, 3}), func(_ context.Context, n int) (int, error) { return n, nil }, run.Options()...)
	if err := errors.Join(err, run.End(err)); err != nil || len(results) != 3 {
		t.Errorf("%d results, %v", len(results), err)
	}
}
