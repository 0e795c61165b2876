// Package window has the two windows that both laws watch a server through.
//
//	ends of calls ─▶ Errors: too many break ─▶ the pace is halved
//	latencies     ─▶ Mean:   they grow with load ─▶ fewer calls in flight
//
// It promises what package limiter does: nothing here reads a clock, asking changes nothing, and
// a plain copy is independent of the original.
package window
