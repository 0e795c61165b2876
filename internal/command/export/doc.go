// Package export writes the items of an output as a table, for spreadsheets, pandas, DuckDB and R.
//
// Each item is one row, also one that failed. A value that an answer does not have is an empty
// cell, or null in JSONL. Nothing is changed, and memory does not grow with the output: --join
// and --in-order keep 16 bytes for each item, and no more.
//
//	results.jsonl ─▶ journal.Records ─▶ row ─▶ columns ─▶ cells ─▶ CSV, TSV, JSONL, Markdown
//	                                     ▲
//	input.jsonl ─▶ index by id ──────────┘
package export
