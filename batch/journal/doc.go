// Package journal defines the lines of result files, and reads them back for a later run.
//
// Whatever is read back is as it was written: each line bears a checksum. A file that is
// damaged, or that headrace did not write, is refused and stays as it is. From its own
// files the package cuts off no more than a last line that was never written to its end. If
// that is the only line, it does so only if the line has the whole beginning of a line of
// ours. A last line that lacks only its line feed is whole. A file that holds something is
// never overwritten. A run remembers ResumeBytesPerItem bytes of each item that has ended.
//
// The output is the journal. When a later run reads it, the keys show which items have
// ended, and where to go on.
//
//	results.jsonl ─▶ LockOutput ─▶ ReadJournal ─▶ Journal ─▶ Keys: leave these out
//	                                                 └─▶ Append ─▶ Tail ─▶ package saver
//
// An item that failed and is tried again gets a second line, in the output or in the errors
// file; DropSuperseded removes the first one. If a crash comes between, the output counts
// before the errors file, and there the last line counts. ReadProgress sums both up, while
// a run is on or after it. Repair keeps each good line of a damaged file. Arrange brings
// the lines of an output into the order of its input. Functions that rewrite a file write
// the new one next to the old one, and follow links.
package journal
