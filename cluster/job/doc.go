// Package job is what stands in the store of a cluster of a job: what was submitted and how it is,
// and where everything else that is known of it stands.
//
// It promises that a record, once written, stays as it is: a change is the next one, created if
// absent, so that of two who change at once the second changes what the first has left. What a
// newer program has written is refused, with what to do. No secret is in a record, and no text of
// a user in a name.
//
//	submissions/<key>                        the job's name, by what was asked or by a name for it
//	jobs/<job>/job-<version>.json            what was submitted, and its state: the highest counts
//	jobs/<job>/index/<segment>-<who>         lines and offsets of a segment (package index) …
//	jobs/<job>/index/<segment>-<who>.marks   … and what its lines owe to lines before them
//	jobs/<job>/index/plan-<segments>-<who>   how the inputs are cut into chunks
//	jobs/<job>/input/<input>-<who>-<piece>   what was packed, unpacked
//	jobs/<job>/work/<chunk>/<turn>-<who>     a claim's journal (package claim)
//	jobs/<job>/parts/<thousand>/<n>          a chunk's results and failures: its commit (package parts)
//	jobs/<job>/sums/<thousand>               what a thousand parts come to
//	jobs/<job>/DONE                          what all of them do
//
// What is under way is in the store's folder work, until its part is there. Of a round that tries
// again what failed, the last four have an ending: .r1, .r2. <who> is whoever wrote it, by a name
// that is new with each try: what others name by it is whole.
package job
