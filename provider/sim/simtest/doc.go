// Package simtest asks a simulated provider in tests, without a socket. So a face's own tests
// are about its answers, and not about the way to ask.
//
//	cfg, face ─New─▶ sim.Server ◀─Ask── path, body, headers
//	                      └────────────▶ Answer: status, headers, JSON
//
// It is a package of its own because it needs testing, which sim must not import.
//
// It promises that the clock of New's providers stands still.
package simtest
