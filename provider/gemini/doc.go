// Package gemini speaks Gemini's dialect, generateContent and embeddings: where to send what, and
// how to read answers, also those of streamGenerateContent. catalog.Client makes a client, at AI
// Studio with a key or at Vertex with tokens.
//
//	                  POST …/models/{model}:generateContent, :embedContent, :batchEmbedContents
//	Request ─▶ Body ─▶ x-goog-api-key, or a bearer token ─▶ the provider
//	(no model: refused)                                          │
//	                                                             ▼
//	Reply ◀── {candidates: [{content, finishReason}], usageMetadata}   Answer, Text
//	*Error ◀─ promptFeedback.blockReason, and anything else, as provider.ReplyIn reads it
//
// It promises that a body in Gemini's words goes out byte for byte. Output tokens include the
// model's thoughts, which Gemini counts apart. A model's name is one segment of the path, whatever
// stands in it.
package gemini
