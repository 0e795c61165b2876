// Command bench measures what headrace costs, compared with a bare loop: the same prompts
// and the same server, in turns, each contestant a process of its own.
//
//	         ┌▶ bare      net/http, fixed workers, raw bytes, a plain append
//	prompts ─┼▶ naive     errgroup, x/time/rate, go-openai structs, a plain append
//	         ├▶ typed     the same structs through batch.Stream, a plain append
//	         ├▶ library   raw bytes through batch.Stream, no output
//	         ├▶ command   headrace run: limits, resume keys, accounting, durable output,
//	         │            pictures as JSON, a timeline, costs
//	         └▶ quiet     the same without the last three
//	             │ ▲
//	             ▼ │ loopback
//	           serve      net/http, one canned answer, after the latency of its flag
//
// Promise: figures are ratios to the bare loop of the same round, as medians over the
// rounds, next to the least and the greatest. The absolute figures of a machine are shown,
// not judged. Wall and CPU time are those of the whole process, from its start to its end. A
// contestant that loses an item, or makes a call twice, fails the benchmark.
package main
