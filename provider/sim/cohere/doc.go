// Package cohere is the simulated provider's face in Cohere's own dialect.
//
//	POST /v2/rerank, /v2/embed
//	GET  /v1/models
//	a key as Bearer
//
// Texts to be embedded must say what they are for. There are no headers of limits. An error is
// a message and an id; a spent balance is the used-up month of a trial key. A call is charged
// for what it reads: a rerank reports one search for it, and embeddings their tokens.
package cohere
