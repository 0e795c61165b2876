// Package lines cuts files into lines of bounded length.
//
// It promises that memory is bounded by the longest line that may be, however long one
// is; that a line over the bound is skipped and named, and the next one read; and that
// the end of a file is told from its failure.
//
//	file ─▶ 64 KiB ─▶ Cut:  up to and with the line feed    (journals, CSV: every byte counts)
//	                  Next: without white space and BOM     (prompts)
package lines
