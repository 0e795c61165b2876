// Package cohere speaks the dialect of Cohere's own rerank and embeddings: where to send what,
// and how to read answers (Dialect). It does not speak Cohere's chats: Cohere has a door of
// OpenAI's shape for these.
//
//	rerank      ─▶ Body, as it is ──▶ POST /v2/rerank ─┐
//	embeddings  ─▶ FromEmbeddings ──▶ POST /v2/embed ──┤
//	                                                   ▼
//	Reply ◀── {results} or {embeddings: {float}}, meta.billed_units   Answer
//	*Error ◀─ {message}, as provider.ReplyIn reads it
//
// It promises that a body in Cohere's words goes out byte for byte. A text that is too long for
// the model is an error, as at OpenAI, and is never cut.
//
// It is small because Cohere has only two operations of its own; each dialect is a folder.
package cohere
