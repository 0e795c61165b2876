// Package command is the command headrace, for a main to run: it runs prompt files against
// rate-limited model APIs.
//
// It promises that nothing is called before everything was checked, that result
// files hold whole lines only, that whatever ends a run leaves it to be gone on
// with by the same command, and that a key is in nothing it prints or writes.
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
// What is known of the provider's limits, and how long it asked to wait, lies beside the
// output (state.go): the next run begins with it. What of the lanes has no flag is said in
// the file of --config (settings_lanes.go); "headrace help config" lists it. How a run goes
// lies there too, second by second (timeline.go), for whoever watches from elsewhere.
//
// What is exported is for the mains: Main and Extra, for one that adds commands and runs what
// has --cluster, and Settings, from which such a command has the flags, the client, the pace,
// the faces and the ends of run. Without an Extra the words of the full command say where
// that is to be had.
//
// Only Main looks at the process it runs in; everything else is given a world,
// so that tests can give another.
package command
