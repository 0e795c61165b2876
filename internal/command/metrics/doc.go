// Package metrics shows the figures of a run to Prometheus: at an address while the run goes
// on, and in a file for the textfile collector of node_exporter.
//
//	observe.Recorder ─▶ Stand ─▶ Collector ─┬─ Server: /metrics at --metrics-addr
//	                                        └─ File: --metrics-file, every 15 s and at the end
//
// It promises that a figure costs nothing until somebody asks for it: each scrape takes one
// snapshot of the recorder. Only GenAI, with the names of OpenTelemetry's conventions, counts
// each call. Counters never fall, and at the end of a run they equal its
// summary. No label holds an id, a path or a message. A run has at most MaxLanes lanes by
// name; all further lanes are "other".
package metrics
