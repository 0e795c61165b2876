// Package gemini speaks Gemini's dialect, generateContent and embeddings: it says what is sent where and how
// answers are read, also those of streamGenerateContent. catalog.Client makes a client, at AI Studio with a key or at Vertex with
// tokens.
//
//	                  POST …/models/{model}:generateContent, :embedContent, :batchEmbedContents
//	Request ─▶ Body ─▶ x-goog-api-key, or a bearer token ─▶ the provider
//	(no model: refused)                                          │
//	                                                             ▼
//	Reply ◀── {candidates: [{content, finishReason}], usageMetadata}   Answer, Text
//	*Error ◀─ promptFeedback.blockReason, and anything else, as provider.ReplyIn reads it
//
// It promises that a body in Gemini's words goes out byte for byte, that output tokens have
// in them what the model thought, which Gemini counts apart, and that whatever stands in a
// model's name it is one segment of the path.
package gemini
