// Package journal is what stands in result files, and what a later run learns of it.
//
// It promises that whatever is read back is as it was written: each line bears a checksum. A
// file that is not one of its own, or that is damaged, is refused and stays as it is; of its
// own it cuts off no more than a last line that was never written to its end, and where that
// is all there is, only if it has the whole beginning of a line of ours. A last line that
// lacks only its line feed is whole. Nothing that holds something is overwritten. Of each
// item that has ended ResumeBytesPerItem bytes are remembered.
//
// The output is the journal: read by a later run, it tells by their keys which items
// have ended, and where to go on.
//
//	results.jsonl ─▶ LockOutput ─▶ ReadJournal ─▶ Journal ─▶ Keys: leave these out
//	                                                 └─▶ Append ─▶ Tail ─▶ package saver
//
// An item that failed and is tried again gets a second line, in the output or in the
// errors file; DropSuperseded takes the first one away. If a crash comes between, the
// output counts before the errors file, and there the last line. ReadProgress sums both
// up, while a run is on or after it. Of a file that is damaged, Repair keeps each good line.
// Arrange brings the lines of an output into the order of its input. What makes a file
// anew writes it beside the old one, and follows links.
package journal
