// Package timeline is OUTPUT.run.jsonl: what the runs of an output were like, second by
// second, in a file that stays small.
//
//	Recorder ─▶ Writer.Sample ─▶ room ─▶ one goroutine ─▶ start
//	            (never waits)                             sample, sample, …   of one length each
//	                                                      failures            each minute, and at the end
//	                                                      summary
//	                                                      progress            the last line, written anew each second
//	                                                        └─▶ Reader ─▶ headrace status --watch, --json
//
// It promises that a run never waits for it and never fails of it: what cannot be written
// ends the timeline with a notice. It is no journal: it is never synced, and what a killed
// process left unfinished at its end is cut off. It holds at most MaxSamples samples and
// MaxBytes bytes, however long the runs: a file that is full is written anew beside the old
// one, with samples of twice the length. What it did not write itself it does not touch.
//
// Nothing is ever cut off while a run writes. The end of the file (a sample that still
// grows, and the progress) is written over by one write that is never shorter than what it
// covers, spaces making up the difference: so a process that is killed leaves the end before
// it or the one after, and a mixture of the two only where it died within that write.
package timeline
