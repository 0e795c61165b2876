// Package progress shows a run while it goes on, and its report, on a terminal, in lines, or
// as JSON for programs.
//
// It promises that a run never waits for its display. What a terminal is too slow for is
// left out, and the end says how much that was. One goroutine writes, so no two lines are
// ever mixed; texts of others (models, servers) steer no terminal.
//
//	run ── Begin, Show, Observe, Notice, Write (its log) ──▶ Console ──▶ Manner ─┬─ Live: one line, drawn again,
//	                                                        one goroutine,      │        and lines above it
//	       Close(Report) ────────────────────────────────▶  bounded room        ├─ Plain: a line now and then
//	                                                                            ├─ JSON: an object a line
//	                                                                            └─ Silent: notices only
//
//	event.Progress ─▶ Figures      Transition ─▶ Story      LongWait ─▶ WaitStory
//
// It does not judge why calls break. It shows a cause's Error, of which the caller has made a
// line without a key. The words about a run, and the events of JSON, are package event's.
package progress
