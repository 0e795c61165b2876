// Package stream puts answers that come as streams of events together again, into the JSON
// that the plain endpoint would have sent.
//
// A Splitter cuts bytes into events, and an Assembler puts events together. Both take
// what comes, and neither reads, waits or knows a clock, so that a program that copies bytes
// elsewhere can tap them. They promise that any split of the bytes gives the same, and that
// an answer is whole or an error. They keep what the answer will have and one event besides;
// their caller bounds that, by Held and Size.
//
//	bytes ─▶ Splitter ─event─▶ Assembler ─▶ Body: one JSON value
//	         SSE, or frames       │
//	         of a dialect         └───────▶ Usage, as far as it was told
//
// Builder and Value are for assemblers: texts grow by what is appended, and nothing that has
// come is parsed again.
package stream
