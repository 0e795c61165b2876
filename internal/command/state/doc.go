// Package state keeps what is known of the lanes, and of items that are not over, from one process to
// the next.
//
// It promises that a foreign, damaged or old file is never believed, and a foreign one never replaced. A
// save replaces the file at once or not at all.
//
//	batch.WithMemorySaver ─▶ File.Save ─▶ state ─ sum ─▶ disk
//	batch.WithMemory      ◀─ File.Load ◀─ whole? ours? of this server, law and day?
package state
