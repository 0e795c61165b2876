// Package sim is a simulated provider: one model of a hosted quota, asked in
// virtual time by a test or served over HTTP in the dialect of a provider.
//
// It promises that every decision is a function of the configuration, the seed and the calls
// given to it. No clock, lock or unseeded chance is in [Model]. It shares no code with the
// client side's arithmetic of admission, so that a mistake there cannot hide behind the same
// mistake here.
//
//	a test that passes the time ─────────┐
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
// The [face.Face] determines the operations, the demands on a request and the wording of answers,
// faults and limits: see the folders next to this file. Without one it is OpenAI's:
// POST /v1/chat/completions, /v1/embeddings, /v1/responses, /v1/completions, /v1/moderations and
// /v1/rerank, and GET /v1/models. Every face also has GET /sim/books and /healthz.
//
// An answer is [Answer] of the prompt and carries its checksum. So the holder of a prompt can
// prove that an answer belongs to it. With TrackBodies the books count each received body by
// its SHA-256. So the holder of a file can prove that it came unchanged.
// Where a request asks for a stream, the pieces of the answer are spread over its latency.
package sim
