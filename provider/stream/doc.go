// Package stream puts answers that come as streams of events together again, into the JSON
// that the plain endpoint would have sent.
//
// A Splitter cuts bytes into events, and an Assembler puts events together. Both take the bytes
// as they come, and neither reads, waits or uses a clock. So a program that copies bytes
// elsewhere can tap them. They promise that any split of the bytes gives the same, and that
// an answer is whole or an error. They keep the parts of the answer and one event besides;
// their caller bounds that, by Held and Size.
//
//	bytes ─▶ Splitter ─event─▶ Assembler ─▶ Body: one JSON value
//	         SSE, or frames       │
//	         of a dialect         └───────▶ Usage, as far as it was told
//
// Builder and Value are for assemblers: texts grow by appending, and nothing is parsed twice.
package stream
