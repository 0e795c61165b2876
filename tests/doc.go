// Package tests holds what needs the whole thing: runs of thousands of calls
// against the simulated provider, whose books must tell the same as ours.
//
// It promises that each storm here ends with nothing lost, nothing answered
// twice, nobody left waiting and no goroutine running.
//
//	items ─▶ batch.Run ─▶ provider/openai ─▶ provider/sim (in a bubble of virtual
//	             │                                 │       time, or over sockets)
//	             ▼                                 ▼
//	          Summary ◀──── must agree ───────── Books
package tests
