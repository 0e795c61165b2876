// Package lines cuts files into lines of bounded length, and keeps sets of line numbers.
//
// The memory of a Reader is bounded by the bound on lines, however long a line is. A line
// over the bound is skipped and named, and the next one read. A Reader tells the end of a
// file from its failure.
//
//	file ─▶ 64 KiB ─▶ Cut:  up to and with the line feed    (journals, CSV: every byte counts)
//	                  Next: without white space and BOM     (prompts)
package lines
