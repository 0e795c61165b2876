// Package index finds out what lines a job's inputs have and cuts them into chunks, by many
// machines at once and without copying; and it reads a chunk.
//
// It promises that the chunks of a job, read one after the other, wherever and by whomever, give
// the requests, ids, keys and complaints that one prompts.Reader gives of the whole; that it is so
// wherever the inputs are cut; and that no memory grows with their length but for two bits a line,
// and those only where ids look like those that lines get by their number.
//
//	inputs ─Segments─▶ ranges of bytes ─Write, by many─▶ an index of each: steps, traces, complaints
//	                                                        │
//	                                     Merge, by one ◀────┘ line numbers, ids used twice, the
//	                                        │                 n-th of lines that ask the same
//	                                        ▼
//	                    Plan ─▶ Chunks: the n-th, or all ─▶ Source.Read, by many ─▶ prompts.Request
//
// A segment is read through once, as a run checks a file before its first call. What one segment
// cannot know, whether a line is like one of another, is found by merging sorted traces; what comes
// of it, a mark for each line that is not the first of its kind, stands in an object that chunks name.
package index
