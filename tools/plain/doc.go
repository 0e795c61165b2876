// Plain finds words in comments, pages and printed texts that an English reader stumbles over.
//
//	go -C tools run ./plain ..
//
//	.go files ─▶ comments, less drawings ─┐
//	.md files ─▶ lines, less code ────────┼─▶ a list of words ──┬─▶ file:line: word: say that instead
//	.go files ─▶ strings that are printed ┴─▶ and a longer one ─┘
//
// A drawing is an indented line of a comment. Words in backquotes are names, and are not read. The
// program exits with 1 if it finds a word.
package main
