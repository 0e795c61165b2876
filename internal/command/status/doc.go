// Package status is headrace status: it shows what the files of a run hold, and with --watch the
// run itself, by its timeline.
//
// It promises that it changes nothing, also while a run writes to the files. It exits with the
// code that the run ended with.
//
//	result files ─▶ counts ─────────────────────┐
//	timeline ─▶ watched run ─▶ panel or lines ──┴▶ exit code of the run
package status
