// Package simtest asks a simulated provider in tests, without a socket: a face's own tests are
// about what it says, and not about how it is asked.
//
//	cfg, face ─New─▶ sim.Server ◀─Ask── path, body, headers
//	                      └────────────▶ Answer: status, headers, JSON
//
// It promises that the clock of what New makes stands still.
package simtest
