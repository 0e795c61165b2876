// Package sim is a simulated provider: one model of a hosted quota, asked in
// virtual time by a test or served over HTTP in OpenAI's dialect.
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
//	                          ▲    └───────────┘    what the headers say
//	any client ── Serve ──────┘          │
//	 (loopback socket)                   ▼
//	                                   Books ──▶ GET /sim/books
//
// The server answers POST /v1/chat/completions, /v1/embeddings, /v1/responses
// and /v1/completions, and GET /v1/models, /sim/books and /healthz. An answer
// is [Answer] of the prompt and carries its checksum, so that whoever holds a
// prompt can prove that an answer belongs to it. Streams are refused with 400.
package sim
