// Package openai is the simulated provider's face in OpenAI's dialect.
//
// It answers POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses and
// /v1/moderations, and GET /v1/models. It also answers /v1/rerank and /v1/messages, as some servers
// of OpenAI's shape do. The first, second and fourth come as a stream where the body asks for one,
// and so do messages. It asks for a key only if the server was given some.
//
//	/v1/…                                        OpenAI's words, x-request-id
//	/openai/v1/…                                 ┐ Azure's: a key in api-key or as Bearer,
//	/openai/deployments/{d}/…?api-version=…      ┘ {error:{code,message}}, apim-request-id,
//	                                               resets in seconds, retry-after-ms
//
// A client of Azure's is given the server's address with /openai/v1, or with /openai for the
// older form, whose deployment is the model.
package openai
