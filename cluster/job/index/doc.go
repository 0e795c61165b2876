// Package index finds out which lines a job's inputs have and cuts them into chunks, without
// copying. It also reads a chunk.
//
// Any machine may read any chunk of a job. Read in order, the chunks give the requests, ids, keys and
// complaints that one prompts.Reader gives of the whole.
//
//	inputs ─Plan─▶ one reader of all: steps and marks ─▶ Chunks: the n-th, or all
//	                                                        │
//	                                       many: Source.Read ◀┘─▶ prompts.Request
//
// One machine reads all inputs through once, as a run checks a file before its first call. The reader
// remembers prompts.BytesPerItem bytes for each item, 750 MB for 100 million. Everything else that it
// holds belongs to one segment: a stretch of lines whose index has an object of its own. A line may depend on
// lines before it, as with an id used twice. Such facts are in an object that chunks name.
package index
