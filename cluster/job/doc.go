// Package job is what stands in the store of a cluster: jobs, what is known of their inputs, and
// what became of their lines.
//
// It promises that whatever is there was written once, whole, or is not there; that the parts of
// a job, one after the other, are the files that one process would have written with --order
// input; and that everything else can be made again from them and the input.
//
//	jobs/<job>/job-<k>.json           what was submitted, and its state; the highest k counts
//	jobs/<job>/index/<input>-<seg>    lines, offsets, ordinals of a segment of the input
//	jobs/<job>/work/<n>/<turn>-<who>  a claim's journal
//	jobs/<job>/parts/<n>[.r<round>]   a chunk's results and failures, in input order: its commit
//	jobs/<job>/DONE                   counts and sums of all parts
package job
