// Package tests holds tests of the whole system: runs of thousands of calls against the
// simulated provider, whose books must agree with ours.
//
// It promises that each storm here ends with nothing lost, nothing answered twice, no waiter
// left and no goroutine running.
//
//	items ─▶ batch.Run ─▶ provider/openai ─▶ provider/sim (in a bubble of virtual
//	             │                                 │       time, or over sockets)
//	             ▼                                 ▼
//	          Summary ◀──── must agree ───────── Books
package tests
