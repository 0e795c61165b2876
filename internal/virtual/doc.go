// Package virtual is time that passes from one happening to the next, for worlds in which a day lasts a second.
//
//	In(2s, answer) ─▶ Queue: 1.2s beat · 2s answer · 2s die …
//	                    │ the soonest; of two at one moment, the one that was planned first
//	alarm ─▶ Pass ──────┴─▶ Now moves to what comes first ─▶ Do: beat()
//
// It promises that the same plans give the same course. A world asks its law or machine for an alarm, calls Pass,
// and then calls Do once for a single happening, or until nothing more is due.
//
// It has no clock, goroutine or chance. Code that runs in goroutines has a synctest bubble or a fake clockwork.Clock
// instead. Two rigs in limiter/model look at their law every 5 ms, or count in seconds as floats, and stay as they are.
//
// It is a package of its own because the worlds of the machine, the cluster, the lab and the forecast need it.
package virtual
