// Package exit holds how the command ends: its exit codes, the words for people, and what must
// not be in them.
//
// It promises that no text that it prints steers a terminal, names a package of this program, or
// has anything in it that looks like a key. The words of others stay on one line.
//
//	End, EndOf, Refuse ─▶ Ending{code, complaints, text, resume} ─▶ Report ─▶ standard error
package exit
