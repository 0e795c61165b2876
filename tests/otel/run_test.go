package otel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	gopenai "github.com/sashabaranov/go-openai"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/headrace/headrace/batch"
	otelheadrace "github.com/headrace/headrace/contrib/otel"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// What must be in nothing that the collector prints.
const (
	secret = "sk-proj-a-key-of-nobody-0123456789"
	prompt = "a prompt of nobody"
)

// instruments are those of the table of contrib/otel, with their units.
var instruments = map[string]string{
	"headrace.run.bound": "s", "headrace.run.items": "{item}", "headrace.run.items_before": "{item}", "headrace.run.remaining": "s",
	"headrace.run.allowed_items_per_second": "{item}", "headrace.run.efficiency": "1", "headrace.items": "{item}",
	"headrace.items.failed": "{item}", "headrace.items.held": "{item}", "headrace.items.redistributed": "{item}",
	"headrace.answers.truncated": "{answer}", "headrace.calls": "{call}", "headrace.calls.in_flight": "{call}",
	"headrace.calls.in_flight_max": "{call}", "headrace.limit.rate": "{unit}", "headrace.limit.used": "1", "headrace.lane.phase": "{lane}",
	"headrace.lane.cooldowns": "{cooldown}", "headrace.lane.probes": "{call}", "headrace.tokens": "{token}", "headrace.cost.usd": "{USD}",
	"headrace.cost.unpriced_items": "{item}", "headrace.cost.usd_max": "{USD}", "headrace.cost.usd_spent": "{USD}",
	"headrace.cost.usd_reserved": "{USD}", "gen_ai.client.operation.duration": "s", "gen_ai.client.token.usage": "{token}",
}

// The collector prints each instrument with its unit, and the counters as the summary of the run has them. It prints the
// spans of the run and of its calls, and neither a prompt nor a key.
func TestTheCollectorPrintsARun(t *testing.T) {
	address, printed, stop := collect(t)
	ctx := t.Context()
	meters, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(address), otlpmetrichttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(meters, metric.WithInterval(time.Hour))))
	spans := trace.NewTracerProvider(trace.WithBatcher(traces))
	sum := run(ctx, t, otelheadrace.Config{MeterProvider: metrics, TracerProvider: spans, Provider: "openai", Server: "api.example", CallSpans: true}, metrics.ForceFlush)
	if err := errors.Join(spans.ForceFlush(ctx), metrics.Shutdown(ctx), spans.Shutdown(ctx)); err != nil {
		t.Fatal(err)
	}
	stop()
	all, err := os.ReadFile(printed)
	if err != nil {
		t.Fatal(err)
	}
	text := string(all)
	for name, unit := range instruments {
		if !strings.Contains(text, "Name: "+name+"\n") {
			t.Errorf("%s is not printed", name)
			continue
		}
		if !slices.ContainsFunc(strings.Split(text, "Name: "+name+"\n")[1:], func(of string) bool {
			head, _, _ := strings.Cut(of, "DataType")
			return strings.Contains(head, "Unit: "+unit+"\n")
		}) {
			t.Errorf("%s has not the unit %s", name, unit)
		}
	}
	for result, n := range map[string]int{"succeeded": sum.Succeeded, "failed": sum.Failed} {
		point := fmt.Sprintf("result: Str(%s)\n", result)
		if !slices.ContainsFunc(strings.Split(text, point)[1:], func(of string) bool {
			head, _, _ := strings.Cut(of, "NumberDataPoints")
			return strings.Contains(head, fmt.Sprintf("\nValue: %f\n", float64(n)))
		}) {
			t.Errorf("no item count says %s: %d", result, n)
		}
	}
	for _, want := range []string{
		"Name           : headrace.run", "Name           : chat m", "gen_ai.operation.name: Str(chat)", "gen_ai.provider.name: Str(openai)",
		"gen_ai.request.model: Str(m)", "server.address: Str(api.example)", "gen_ai.usage.input_tokens: Int(", "headrace.attempt: Int(1)", "error.type: Str(invalid)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no span has %q", want)
		}
	}
	if strings.Contains(text, secret) || strings.Contains(text, prompt) {
		t.Error("a prompt or a key is printed")
	}
	if t.Failed() {
		t.Logf("%.20000s", text)
	}
}

// run makes a run of 26 s: its end is forecast after 20 s, when the metrics are flushed for the first time.
func run(ctx context.Context, t *testing.T, cfg otelheadrace.Config, flush func(context.Context) error) (sum batch.Summary) {
	t.Helper()
	const items = 260
	server := sim.New(sim.Config{RPM: 600, Burst: time.Second, Headers: true, Latency: sim.Latency{Median: 50 * time.Millisecond}}, clockwork.NewRealClock())
	client, err := openai.New(openai.Config{APIKey: secret, Transport: sim.NewTransport(server)})
	if err != nil {
		t.Fatal(err)
	}
	var requests []gopenai.ChatCompletionRequest
	for k := range items {
		r := gopenai.ChatCompletionRequest{Model: "m", Messages: []gopenai.ChatCompletionMessage{{Role: "user", Content: fmt.Sprint(prompt, k)}}}
		if k == 3 {
			r.MaxCompletionTokens = -1 // refused for good
		}
		requests = append(requests, r)
	}
	watched, err := otelheadrace.Watch(ctx, cfg, observe.Config{Total: items, Price: func(any, string, provider.Usage) (float64, bool) { return 0.25, true }})
	if err != nil {
		t.Fatal(err)
	}
	began, flushed := time.Now(), false
	options := append(watched.Options(), batch.WithSummary(&sum), batch.WithPoolOf(func(gopenai.ChatCompletionRequest) string { return "m" }), batch.WithMaxCost(batch.Budget[gopenai.ChatCompletionRequest]{
		Max:     1000,
		Reserve: func(gopenai.ChatCompletionRequest, string, float64) (float64, bool) { return 0.5, true },
		Cost:    func(gopenai.ChatCompletionRequest, string, provider.Usage) (float64, bool) { return 0.25, true },
	}))
	for _, err := range batch.Stream(ctx, slices.Values(requests), client.Chat, options...) {
		if err != nil {
			t.Fatal(err)
		}
		if !flushed && time.Since(began) > 22*time.Second {
			flushed = true
			if err := flush(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(flush(ctx), watched.End(nil)); err != nil {
		t.Error(err)
	}
	if !flushed || sum.Failed != 1 || sum.Succeeded != items-1 {
		t.Fatalf("flushed %t, %+v", flushed, sum)
	}
	return sum
}

// The product's module has no OpenTelemetry in its graph.
func TestTheRootKnowsNothingOfIt(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "graph")
	cmd.Dir = "../.."
	graph, err := cmd.Output()
	if err != nil || !strings.Contains(string(graph), "github.com/headrace/headrace ") {
		t.Fatal(err, len(graph))
	}
	if strings.Contains(string(graph), "go.opentelemetry.io") {
		t.Error("the root's module graph has OpenTelemetry")
	}
}
