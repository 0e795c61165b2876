// Package progress shows a run while it goes on, and what it came to, on a terminal, in
// lines, or as JSON for programs.
//
// It promises that a run never waits for whoever looks on: what a terminal is too slow for
// is left out, and how much that was is said at the end. One goroutine writes, so no two
// lines are ever mixed; what others said (models, servers) steers no terminal.
//
//	run ── Begin, Show, Observe, Notice, Write (its log) ──▶ Console ──▶ Manner ─┬─ Live: one line, drawn again,
//	                                                        one goroutine,      │        and lines above it
//	       Close(Report) ────────────────────────────────▶  bounded room        ├─ Plain: a line now and then
//	                                                                            ├─ JSON: an object a line
//	                                                                            └─ Silent: notices only
//
//	event.Progress ─▶ figures      Transition ─▶ Story      LongWait ─▶ waitStory
//
// Why calls break it does not judge: a cause is shown as its Error says, and whoever
// passes it on has made a line without a key of it. What is shown of a run, and the events of
// JSON, are package event's.
package progress
