// Command peers runs headrace run, as it was built, against every server of a table,
// on the real clock and over loopback, and judges what came of it.
//
//	rows.go ─▶ schedule.go ─▶ trial.go ─┬─▶ servers.Start      the server, and its count
//	   │        as many at once         └─▶ command.go         headrace run, a process
//	   │        as the machine bears              │
//	   ▼                                          ▼
//	ideal.go, bound.go ─────────▶ table.go: took over ideal, refusals, done; misses
//
// It promises that a row knows nothing of the law: it is what a user has who says
// where the server is and no more, but for what stands in the row's flags. Took is
// the time of the whole process; ideal is that of one who knows the server, and
// wastes nothing. A row that cannot be run here is shown as left out and is no miss.
package main
