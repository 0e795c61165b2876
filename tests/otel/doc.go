// Package otel has the tests of contrib/otel against the collector of OpenTelemetry, which others wrote.
//
// It promises nothing to anybody: it is a module of its own, as the collector brings a hundred others.
//
//	batch.Run ─ contrib/otel ─ SDK ─ OTLP over HTTP ─▶ collector ─ its debug exporter ─▶ a text, which the test reads
package otel
