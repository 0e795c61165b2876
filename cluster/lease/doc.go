// Package lease decides who is keeper: one process of a cluster at a time.
//
// No two processes that follow it believe at one moment that they are keeper, if their clocks run within a hundredth of
// each other. This holds as long as the bus accepts only one of two simultaneous writes to the lease. If the bus
// breaks that, the store's epochs show it: each keeper's epoch is higher than any before it. There is no goroutine,
// clock or wait in here.
//
//	candidate ──one revision seen for 1.01 terms, and written──▶ winner ──epoch minted──▶ keeper
//	    ▲                                                                                │  ▲
//	    └──────── another holds it, or a higher epoch is heard of ◀──────────────────────┤  │ written again
//	                                                             its time has run out ──▶ lapsed
//
// Where there never was a keeper nobody waits. Then nothing stands in the lease, the store has no epoch, and the first
// epoch is minted once. A process that gets a later epoch was too late, and waits.
//
// The lease is a value with a revision, written only over the revision that its writer has seen. Its holder writes it
// every quarter of a term, and is keeper until 0.99 terms after sending the latest write that succeeded. A holder that
// lapses was the last keeper, for all it knows. It may write over its own revision; if that succeeds, nobody was keeper
// since. The holder recognises a write whose answer was lost by holder and counter in the value. An error proves
// nothing.
package lease
