// Plain finds words in comments and pages that an English reader stumbles over.
//
//	go -C tools run ./plain ..
//
//	.go files ─▶ comments, less drawings ─┐
//	                                      ├─▶ the list of words ─▶ file:line: word: say that instead
//	.md files ─▶ lines, less code ────────┘
//
// A drawing is an indented line of a comment. Words in backquotes are names, and are not read. The
// program exits with 1 if it finds a word. The texts that the command prints have a list of their
// own (internal/command, TestTextsArePlain).
package main
