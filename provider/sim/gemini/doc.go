// Package gemini is the simulated provider's face in Gemini's dialect.
//
//	AI Studio  POST /v1beta/models/{m}:generateContent, :streamGenerateContent, :embedContent,
//	           :batchEmbedContents
//	           GET  /v1beta/models
//	           a key in x-goog-api-key (or ?key=, or Bearer)
//	Vertex     POST /v1/projects/{p}/locations/{l}/publishers/google/models/{m}:generateContent
//	           and :streamGenerateContent, :embedContent (and without projects and locations, for keys) Bearer or x-goog-api-key
//
// The version in a path may be v1, v1beta, v1beta1 or v1alpha. A body may have its names in
// camelCase or snake_case; a name that is not known is refused, and so is a model in the
// body. A stream comes as server-sent events with alt=sse, else as a list of JSON. There are
// no headers of limits. Thoughts are counted separately from the answer's tokens.
//
// A refusal by the limits is RESOURCE_EXHAUSTED. AI Studio's names the quota that was hit
// (unless the server is terse) and the wait (where the server names waits) in its details;
// Vertex' says nothing. A call is charged for what it reads: there the quota is of input.
package gemini
