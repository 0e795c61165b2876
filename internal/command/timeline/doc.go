// Package timeline is OUTPUT.run.jsonl: the runs of an output, second by second, in a file
// that stays small.
//
//	Recorder ─▶ Writer.Sample ─▶ room ─▶ one goroutine ─▶ start
//	            (never waits)                             sample, sample, …   of one length each
//	                                                      failures            each minute, and at the end
//	                                                      summary
//	                                                      progress            the last line, written again each second
//	                                                        └─▶ Reader ─▶ headrace status --watch, --json
//
// It promises that a run never waits for its timeline and never fails because of it: a write
// error ends the timeline with a notice. The timeline is no journal: it is never synced, and
// an end that a killed process left unfinished is cut off. It holds at most maxSamples
// samples and maxBytes bytes, however long the runs. A full file is written again next to
// the old one, with samples of twice the length. The package does not touch files that it
// did not write itself.
//
// Nothing is ever cut off while a run writes. One write replaces the end of the file (a sample
// that still grows, and the progress). It is never shorter than what it covers, as spaces make
// up the difference. A killed process therefore leaves the end from before that write or the
// one from after it. Only a process that dies within the write leaves a mixture of the two.
package timeline
