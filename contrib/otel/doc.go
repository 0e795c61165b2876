// Package otelheadrace shows a run of package batch to OpenTelemetry: metrics, and spans if they are wanted.
//
//	batch.Run ─▶ observe.Recorder ─┬─ Snapshot, when metrics are collected ─▶ headrace.*: counters and gauges
//	                               └─ OnCall, after each call ─▶ gen_ai.client.*: histograms, and a span of each call
//
// Use:
//
//	run, err := otelheadrace.Watch(ctx, otelheadrace.Config{Provider: "openai"}, observe.Config{})
//	results, err := batch.Run(ctx, items, call, run.Options()...)
//	err = errors.Join(err, run.End(err))
//
// It imports the API of OpenTelemetry only: a program chooses its SDK and its exporters. The metrics of headrace have
// the names of its /metrics, with dots, so that an exporter to Prometheus gives the same. Collecting takes one snapshot, and costs
// the run nothing. Attributes hold no id, no path and no message, and no prompt or answer is ever shown.
package otelheadrace
