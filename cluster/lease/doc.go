// Package lease decides who is keeper: one process of a cluster at a time.
//
// It promises that of all who follow it, and whose clocks run within a hundredth of each other, no
// two believe at one moment that they are keeper, as long as the bus writes the lease
// for one of two who write it at once. What the bus breaks of that, the store's epochs tell: each keeper's is
// higher than that of any before it. There is no goroutine, clock or wait in here.
//
//	candidate ──one revision seen for 1.01 terms, and written──▶ winner ──epoch minted──▶ keeper
//	    ▲                                                                                │  ▲
//	    └──────── another holds it, or a higher epoch is heard of ◀──────────────────────┤  │ written again
//	                                                             its time has run out ──▶ lapsed
//
// Where there never was a keeper nobody waits: nothing stands in the lease, no epoch in the store, and the first epoch is minted
// once. Who gets a later one was too late, and waits.
//
// The lease is a value with a revision, written only over the revision that its writer has seen.
// Its holder writes it every quarter of a term, and is keeper until 0.99 terms after it sent the
// latest write that succeeded. Who lapses was keeper last, for all it knows: it may write over its own
// revision, and if that succeeds nobody was keeper since. An answer that was lost is recognised by
// holder and counter in the value. An error proves nothing.
package lease
