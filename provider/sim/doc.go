// Package sim is a simulated provider: one model of a hosted quota, asked in
// virtual time by a test or served over HTTP in the dialect of a provider.
//
// It promises that every decision is a function of the configuration, the seed
// and the calls it was told of: no clock, lock or unseeded chance is in [Model].
// It shares no code with the client side's arithmetic of admission, so that a
// mistake there cannot hide behind the same mistake here.
//
//	a test, told the time ───────────────┐
//	                                     ▼
//	                               ┌───────────┐   outage? key? model? body?
//	http.Client ─▶ Transport ─┐    │   Model   │   quota left? room in both
//	 (no socket)              ▼    │  Decide   │   gauges? what fault is drawn?
//	                      Server ─▶│           │──▶ Verdict: status, latency,
//	                        ▲ ▲    └───────────┘    what the headers say
//	any client ── Serve ────┘ │          │               │
//	 (loopback socket)        │          ▼               ▼
//	                        Face       Books          in the face's words
//	       openai (also Azure's),        │
//	  anthropic, gemini, converse,       │
//	             cohere                  └──▶ GET /sim/books
//
// What may be asked, what is demanded of a request and how answers, faults and limits are
// worded is the [face.Face]'s: see the folders beside this file. Without one it is
// OpenAI's: POST /v1/chat/completions, /v1/embeddings, /v1/responses, /v1/completions,
// /v1/moderations and /v1/rerank, and GET /v1/models. Beside every face are GET /sim/books and
// /healthz.
//
// An answer is [Answer] of the prompt and carries its checksum, so that whoever holds a
// prompt can prove that an answer belongs to it. With TrackBodies the books count each body
// received by its SHA-256, so that whoever holds a file can prove that it came as it is.
// Where a request asks for a stream, the pieces of the answer are spread over its latency.
package sim
