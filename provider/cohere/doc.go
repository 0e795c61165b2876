// Package cohere speaks the dialect of Cohere's own rerank and embeddings: it says what is sent
// where and how answers are read (Dialect). Its chats are not among them: Cohere has a door of
// OpenAI's shape for these.
//
//	rerank      ─▶ Body, as it is ──▶ POST /v2/rerank ─┐
//	embeddings  ─▶ FromEmbeddings ──▶ POST /v2/embed ──┤
//	                                                   ▼
//	Reply ◀── {results} or {embeddings: {float}}, meta.billed_units   Answer
//	*Error ◀─ {message}, as provider.ReplyIn reads it
//
// It promises that a body in Cohere's words goes out byte for byte, and that a text which is too
// long for the model is an error, as it is at OpenAI, and never cut.
package cohere
