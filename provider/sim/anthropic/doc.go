// Package anthropic is the simulated provider's face in Anthropic's dialect.
//
//	POST /v1/messages               x-api-key, or Bearer; both: x-api-key counts
//	POST /anthropic/v1/messages     the same as on Foundry and Bedrock: no headers of limits
//	POST /v1/projects/…/publishers/anthropic/models/{m}:rawPredict and :streamRawPredict
//	                                as on Vertex: Bearer, the model in the path, the version
//	                                in the body
//	GET  /v1/models
//
// It makes Anthropic's demands: a key, anthropic-version, max_tokens, turns of user and
// assistant with something in them. An unknown field is refused, and from version
// 2026-10-21 so are temperature, top_p and top_k. An answer comes as a stream where the body
// asks for one, at each address.
//
// A refusal by the limits is a 429 with Retry-After where the server names waits. Too much
// to do is a 529; a spent balance is a 400, as at Anthropic. Resets are instants of RFC
// 3339. A call is charged for what it reads and what it will write: max_tokens charges
// nothing. Content with cache_control counts as written to the cache, up to its last mark.
package anthropic
