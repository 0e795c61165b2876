// Package run is headrace run: it runs the items of prompt files, each exactly once.
//
// It promises that nothing is called before everything is checked, and that result files hold
// whole lines only. The same command continues a run after any end.
//
//	Command ─ settings ─ account ─▶ batch/promptfile: open, plan, begin, run ─▶ files
//	                                   │         ▲
//	                                   │         └ state.go: what the last run learned, and this one learns
//	                                   └─▶ show.go: recorder ─▶ console, timeline
//	                                   └─▶ log.go
//	                                            ─▶ verdict
//
// The state file next to the output keeps the provider's known limits, and how long it asked to
// wait. The next run begins with them. The timeline next to the output records the run second by
// second, for programs that watch it from elsewhere.
//
// Settings and Calls serve commands of another main that have some of run's flags: they read
// lines, make calls, show and end as run does.
package run
