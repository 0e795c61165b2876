// Package saver writes result lines so that they stay.
//
// It promises that a line is on disk, whole, before whoever waits for it is told so;
// that what was not saved is named; and that the file ends with a whole line whatever a
// full disk does. Save waits for the disk only while thousands of lines, or megabytes, are
// ahead of it: what it holds in memory is bounded in bytes.
//
//	          gather             commit
//	Line ─▶ ┌────────┐ bundle ┌─────────────┐ write     ┌───────────────┐
//	Line ─▶ │ bundle │───────▶│ write, sync │──────────▶│ results.jsonl │ behind its Tail
//	Line ─▶ └────────┘◀───────└──────┬──────┘ sync      └───────────────┘
//	                    empty one    └─▶ saved, or never will be
//
// Two goroutines of a Saver hand two bundles back and forth: lines gather in one while
// the other goes to disk. A line for which nobody waits shares its sync with those of
// the next 10 ms.
//
// Reorder gives lines on in the order of their index, for whoever wants results to stand
// as the prompts did.
package saver
