// Command peers runs headrace run, as it was built, against every server of a table, on the
// real clock and over loopback, and judges the results.
//
//	rows.go ─▶ schedule.go ─▶ trial.go ─┬─▶ servers.Start      the server, and its count
//	   │        as many at once         └─▶ command.go         headrace run, a process
//	   │        as the machine bears              │
//	   ▼                                          ▼
//	ideal.go, bound.go ─────────▶ table.go: took over ideal, refusals, done; misses
//
// It promises that a row knows nothing of the law. A row is in the position of a user who
// gives only the server's address, and the flags of the row. Took is the time of the whole
// process; ideal is that of a client that knows the server, and wastes nothing. A row that
// cannot run here is shown as left out and is no miss.
package main
