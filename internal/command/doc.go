// Package command is the command headrace, for a main to run: it runs prompt files against
// rate-limited model APIs.
//
// It promises that it calls nothing before it has checked everything, and that result files
// hold whole lines only. The same command continues a run after any end. A key is in nothing
// that it prints or writes.
//
//	Main ─ world: arguments, environment, clock, signals, terminal
//	  │
//	root ─┬─ run ──────┐
//	      ├─ plan ─────┤
//	      ├─ status    ├─▶ verdict ─▶ account ─▶ settings ─▶ world ─▶ exit
//	      ├─ simulator │
//	      ├─ repair, help, version
//	      └─ what an Extra adds ─ run.Settings, run.Calls
//
// Each room knows those to its right. The displays (event, panel, progress, timeline) know none
// of them. Main, Run and Extra serve the mains. An Extra adds commands, and runs a command line
// with --cluster. Without an Extra the texts about the full command say where to get it.
//
// Only Main looks at its process; everything else gets a world, so that tests can pass another.
package command
