package otelheadrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/observe"
)

// scope names this package in what it shows.
const scope = "github.com/headrace/headrace/contrib/otel"

// Config says how a run is shown. The zero value uses the global providers, and has no spans of calls.
type Config struct {
	MeterProvider  metric.MeterProvider // nil: the global one
	TracerProvider trace.TracerProvider // nil: the global one

	// CallSpans has each call be a span, in the span of the run. A sampler that keeps errors and a few of the others
	// bounds their number.
	CallSpans bool

	// What the conventions ask of a call. Lane returns it for one lane, if lanes differ. Otherwise it is what stands here; an
	// empty Model is the lane's name, behind its first slash if it has one.
	Operation string // "": chat
	Provider  string // such as openai, aws.bedrock
	Model     string
	Server    string // the host; "": not known
	Lane      func(lane string) Called
}

// Called is what the conventions ask of the calls on one lane.
type Called struct{ Operation, Provider, Model, Server string }

// A Run is a run that is watched. Its Options are those of the run, and no other option may set them again.
type Run struct {
	*observe.Recorder

	cfg       Config
	ctx       context.Context // with the span of the run
	span      trace.Span
	tracer    trace.Tracer
	durations metric.Float64Histogram
	tokens    metric.Int64Histogram
	observed  metric.Registration
}

// Watch begins to show a run that will have the Options of the result. recorderConfig configures the
// recorder of the run; its OnCall is called, too. End must be called. The errors are those of the providers.
func Watch(ctx context.Context, cfg Config, recorderConfig observe.Config) (*Run, error) {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	meter := cfg.MeterProvider.Meter(scope)
	r := &Run{cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope)}
	var faults [3]error
	r.durations, faults[0] = meter.Float64Histogram(durationName, metric.WithUnit("s"), metric.WithDescription("Duration of a call."), metric.WithExplicitBucketBoundaries(secondEnds...))
	r.tokens, faults[1] = meter.Int64Histogram(tokensName, metric.WithUnit("{token}"), metric.WithDescription("Tokens of an answered call."), metric.WithExplicitBucketBoundaries(tokenEnds...))
	userOnCall := recorderConfig.OnCall
	recorderConfig.OnCall = func(c batch.Call) {
		r.recordCall(&c)
		if userOnCall != nil {
			userOnCall(c)
		}
	}
	r.Recorder = observe.New(recorderConfig)
	r.observed, faults[2] = observeRun(meter, r.Recorder)
	if err := errors.Join(faults[:]...); err != nil {
		return nil, fmt.Errorf("otelheadrace: %w", err)
	}
	r.ctx, r.span = r.tracer.Start(ctx, "headrace.run")
	return r, nil
}

// End ends the span of the run, whose error is err, and shows no further metrics: collect them before. It is called once.
func (r *Run) End(err error) error {
	p := r.Snapshot(now())
	r.span.SetAttributes(spanItemsKey.Int(p.Answered+p.Failed), spanFailedKey.Int(p.Failed), spanCallsKey.Int(p.Calls))
	if err != nil {
		r.span.SetStatus(codes.Error, "the run has ended with an error")
	}
	r.span.End()
	return r.observed.Unregister()
}

// callInfo returns the description of the calls on a lane: from the configuration, with defaults for
// the operation and the model.
func (r *Run) callInfo(lane string) Called {
	info := Called{r.cfg.Operation, r.cfg.Provider, r.cfg.Model, r.cfg.Server}
	if r.cfg.Lane != nil {
		info = r.cfg.Lane(lane)
	}
	info.Operation = cmp.Or(info.Operation, "chat")
	if info.Model == "" {
		if _, model, cut := strings.Cut(lane, "/"); cut {
			info.Model = model
		} else {
			info.Model = lane
		}
	}
	return info
}

// recordCall records the duration and tokens of a call that has ended, and its span if the configuration
// asks for spans. Workers call it.
func (r *Run) recordCall(c *batch.Call) {
	info := r.callInfo(c.Lane)
	shared := []attribute.KeyValue{operationKey.String(info.Operation), modelKey.String(info.Model)}
	if info.Provider != "" {
		shared = append(shared, providerKey.String(info.Provider))
	}
	if info.Server != "" {
		shared = append(shared, serverKey.String(info.Server))
	}
	shared = shared[:len(shared):len(shared)] // what follows is not appended in its place
	timed := shared
	if c.Err != nil {
		timed = append(timed, errorKey.String(c.Kind.String()))
	}
	ctx := r.ctx
	if r.cfg.CallSpans {
		ctx = r.callSpan(c, &info, timed)
	}
	r.durations.Record(ctx, c.Latency.Seconds(), metric.WithAttributes(timed...))
	if c.Err == nil && c.Usage.InputTokens+c.Usage.OutputTokens > 0 {
		r.tokens.Record(ctx, c.Usage.InputTokens, metric.WithAttributes(append(shared, tokenTypeKey.String("input"))...))
		r.tokens.Record(ctx, c.Usage.OutputTokens, metric.WithAttributes(append(shared, tokenTypeKey.String("output"))...))
	}
}

// callSpan makes the span of a call that has ended, and returns its context, for exemplars.
func (r *Run) callSpan(c *batch.Call, info *Called, shared []attribute.KeyValue) context.Context {
	attributes := append(shared[:len(shared):len(shared)], spanLaneKey.String(c.Lane), spanAttemptKey.Int(c.Attempt))
	if c.Status != 0 {
		attributes = append(attributes, statusKey.Int(c.Status))
	}
	if c.Usage.InputTokens+c.Usage.OutputTokens > 0 {
		attributes = append(attributes, inputKey.Int64(c.Usage.InputTokens), outputKey.Int64(c.Usage.OutputTokens))
	}
	if c.Finish != "" {
		attributes = append(attributes, finishKey.StringSlice([]string{c.Finish}))
	}
	if c.RequestID != "" {
		attributes = append(attributes, spanRequestKey.String(c.RequestID))
	}
	if c.Again {
		attributes = append(attributes, spanAgainKey.Bool(true))
	}
	if c.Probe {
		attributes = append(attributes, spanProbeKey.Bool(true))
	}
	ctx, span := r.tracer.Start(r.ctx, info.Operation+" "+info.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.Begun), trace.WithAttributes(attributes...))
	if c.Err != nil {
		span.SetStatus(codes.Error, c.Kind.String()) // its message may quote a prompt
	}
	span.End(trace.WithTimestamp(c.Begun.Add(c.Latency)))
	return ctx
}
