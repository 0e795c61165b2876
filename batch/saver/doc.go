// Package saver writes result lines so that they stay.
//
// A line is on disk, whole, before its sender hears that it is saved. Lines that were not
// saved are named. The file ends with a whole line whatever a full disk does. Save waits
// for the disk only while thousands of lines, or megabytes, are ahead of it: the memory of
// a Saver is bounded in bytes.
//
//	          gather             commit
//	Line ─▶ ┌────────┐ bundle ┌─────────────┐ write     ┌───────────────┐
//	Line ─▶ │ bundle │───────▶│ write, sync │──────────▶│ results.jsonl │ behind its Tail
//	Line ─▶ └────────┘◀───────└──────┬──────┘ sync      └───────────────┘
//	                    empty one    └─▶ saved, or never will be
//
// Two goroutines of a Saver pass two bundles back and forth: lines gather in one while the
// other goes to disk. A line for which nobody waits shares its sync with those of the next
// 10 ms.
package saver
