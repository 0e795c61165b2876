// Mutate breaks the code on purpose, one small way at a time, and sees whether a test
// notices.
//
//	go -C tools run ./mutate              # 40 mutants over the packages that decide and observe
//	go -C tools run ./mutate -n 200 -seed 7
//	go -C tools run ./mutate -in limiter/model/blame.go -n 1000
//	go -C tools run ./mutate -list -in batch/run.go:279
//
// A mutant is one edit of one file (a condition negated, a comparison moved by one, a
// statement dropped, a number changed, a zero returned). Go's -overlay lays it over the
// source, so nothing in the tree is written. The package's own tests run first and those of
// its nearest dependant next; the first that fails kills it. A mutant that passes every test
// has survived: either a test is missing there, or the edit means nothing. The same seed
// chooses the same mutants of the same source.
//
//	parse ─▶ every mutant ─▶ a seeded choice ─▶ go test -c -overlay ─▶ own tests ─▶ dependant's ─▶ report
package main
