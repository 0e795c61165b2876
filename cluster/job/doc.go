// Package job describes what the store of a cluster holds of a job: the submission, its state, and the place of
// everything else that is known of it.
//
// A record, once written, stays as it is. A change is the next record, created if absent. Of two processes that
// change at once, the second therefore changes what the first has left. A record of a newer program is refused,
// with advice. No record holds a secret, and no name holds a user's text.
//
//	submissions/<key>                        the job's name, by what was asked or by a name for it
//	jobs/<job>/job-<version>.json            what was submitted, and its state: the highest counts
//	jobs/<job>/index/<segment>-<who>         lines and offsets of a segment (package index) …
//	jobs/<job>/index/<segment>-<who>.marks   … and the facts that its lines need of earlier ones
//	jobs/<job>/index/plan-<segments>-<who>   how the inputs are cut into chunks
//	jobs/<job>/input/<input>-<who>-<piece>   the contents of packed inputs
//	jobs/<job>/work/<chunk>/<turn>-<who>     a claim's journal (package claim)
//	jobs/<job>/parts/<thousand>/<n>          a chunk's results and failures: its commit (package parts)
//	jobs/<job>/sums/<thousand>               the sums of a thousand parts
//	jobs/<job>/FITS                          an answer fits the job's schema (package misfit)
//	jobs/<job>/DONE                          the sums of all parts: the round is over
//
// The store's folder work holds the work under way, until its part exists. In a round that tries failed items again,
// the last four kinds of objects have an ending: .r1, .r2. <who> names the writer, with a new name for each try: an
// object that others refer to by it is whole.
package job
