// Command headrace runs prompt files against rate-limited model APIs.
//
// It promises that nothing is called before everything was checked, that result
// files hold whole lines only, that whatever ends a run leaves it to be gone on
// with by the same command, and that a key is in nothing it prints or writes.
//
//	main ─ world: arguments, environment, clock, signals, terminal
//	  │
//	root ─┬─ run ─ flags ─ connect ─ source ─▶ batch/promptfile: open, plan, begin, run ─▶ files
//	      │      ▲     (all of this may refuse: exit 2)    │
//	      │      └ the file of --config                    └─▶ internal/progress ─▶ terminal
//	      ├─ plan ─ the same source ─▶ internal/plan ─▶ internal/forecast
//	      ├─ status ─ what the files of a run hold; --watch: internal/timeline ─▶ internal/panel
//	      ├─ repair ─ keeps the good lines of damaged ones
//	      ├─ sim ─ provider/sim over HTTP
//	      └─ version
//
// What is known of the provider's limits, and how long it asked to wait, lies beside the
// output (state.go): the next run begins with it. What of the lanes has no flag is said in
// the file of --config (settings_lanes.go); "headrace help config" lists it. How a run goes
// lies there too, second by second (timeline.go), for whoever watches from elsewhere.
//
// Only main looks at the process it runs in; everything else is given a world,
// so that tests can give another.
package main
