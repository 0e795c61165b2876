// Package command is the command headrace, for a main to run: it runs prompt files against
// rate-limited model APIs.
//
// It promises that it calls nothing before it has checked everything, and that result files
// hold whole lines only. The same command continues a run after any end. A key is in nothing
// that it prints or writes.
//
//	Main ─ world: arguments, environment, clock, signals, terminal
//	  │
//	root ─┬─ run ─ flags ─ connect ─ source ─▶ batch/promptfile: open, plan, begin, run ─▶ files
//	      │      ▲     (all of this may refuse: exit 2)    │
//	      │      └ the file of --config                    └─▶ progress ─▶ terminal
//	      ├─ plan ─ the same source ─▶ plan ─▶ forecast
//	      ├─ status ─ what the files of a run hold; --watch: timeline ─▶ panel
//	      ├─ repair ─ keeps the good lines of damaged ones
//	      ├─ sim ─ provider/sim over HTTP
//	      ├─ version
//	      └─ what an Extra adds ─ Settings ─ Calls: flags of run, and what they come to
//
// The state file next to the output keeps the provider's known limits, and how long it asked to
// wait (state.go). The next run begins with them. Lane settings that have no flag stand in the
// file of --config (settings_lanes.go); "headrace help config" lists them. The timeline next to
// the output records the run second by second (timeline.go), for programs that watch it from
// elsewhere.
//
// The exported names are for the mains. Main and Extra serve a main that adds commands and
// runs a command line with --cluster. Settings gives such a command the flags, the client,
// the pace, the faces and the ends of run. Without an Extra the texts about the full command
// say where to get it.
//
// Only Main looks at its process; everything else gets a world, so that tests can pass
// another.
package command
