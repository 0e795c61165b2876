// Package index finds out what lines a job's inputs have and cuts them into chunks, without
// copying; and it reads a chunk.
//
// It promises that the chunks of a job, read one after the other, wherever and by whomever, give
// the requests, ids, keys and complaints that one prompts.Reader gives of the whole.
//
//	inputs ─Plan─▶ one reader of all: steps and marks ─▶ Chunks: the n-th, or all
//	                                                        │
//	                                       many: Source.Read ◀┘─▶ prompts.Request
//
// One machine reads all inputs through once, as a run checks a file before its first call. The reader
// remembers prompts.BytesPerItem bytes for each item, 750 MB for 100 million; all else that it
// holds is about one segment: a stretch of lines whose index stands in an object of its own. What a
// line owes to lines before it, such as an id used twice, stands in an object that chunks name.
package index
