// Package cohere is the simulated provider's face in Cohere's own dialect.
//
//	POST /v2/rerank, /v2/embed
//	GET  /v1/models
//	a key as Bearer
//
// Texts to be embedded must say what they are for. There are no headers of limits. An error is
// a message and an id; a balance that is spent is a trial key's month. What a call is charged is
// what it reads: a rerank tells one search for it, and embeddings their tokens.
package cohere
