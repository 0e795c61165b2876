// Package paced is an http.RoundTripper over a [batch.Shared]. It paces the client of any SDK with one
// line: calls wait in line where they would be refused.
//
// It promises that a body leaves byte for byte as the client wrote it, and that the client gets the
// provider's answer as it came. A call holds its place in flight until its answer was read or
// closed. A client that goes away while its call waits leaves the line without a trace.
//
//	SDK ─▶ http.Client ─▶ Transport ─▶ batch.Do ─▶ coordinator (one line for all calls and runs)
//	                          ▲            │ its turn
//	                          │            ▼
//	                          │    provider.Transport ─▶ base ─▶ the provider
//	                          │            │   └─▶ headers and usage, for the lane
//	                          │            ├─ refused, broken: back in line, within the bounds of a run
//	                          └─ answer ◀──┴─ answered, or refused for good
//
// Calls of one model at one host are a lane. A run on the same [batch.Shared] shares the lane if its
// pool has that name, such as "api.openai.com/gpt-4o-mini".
package paced
