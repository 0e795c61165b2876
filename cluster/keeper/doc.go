// Package keeper owns the limits of an organisation: whoever wants to call under one of them
// asks the keeper, and no call leaves without its permit.
//
// It promises that nothing in it runs by itself: there is no goroutine, channel, lock, clock or
// unseeded chance here. Facts go in by Heard, Job and Limit with the time at which they are
// told, and all that follows from them comes out of Ready. The same facts at the same times
// give the same permits.
//
//	Ask ─▶ peer: its wants ─▶ turns ─▶ ┌───────────────────────┐ ─▶ Give, at most each 25 ms
//	       peer: its reports ────────▶ │ the core's machine,   │
//	Job, Limit ──────────────────────▶ │ and its law           │ ─▶ Cool, at once
//	                                   └───────────────────────┘
//
// The keeper holds one [machine.Machine]. A permit is an item of it: offered when a worker's
// turn comes, granted when the law lets a call leave, settled with the outcome that the worker
// reports. So the law, the phases, waves and probes, the breaker, a server's own waits and the
// bound on calls in flight are the core's, to the line.
//
//	offered ─▶ waiting ─granted─▶ outgoing ─given─▶ given ─▶ sent ─▶ ended
//	              │ withdrawn        │ a wave          ├─ unused: its charge comes back
//	              ▼                  ▼                 └─ no word for permit.Forgotten: its charge is lost
//	             over               over
//
// # Why there is no burst
//
// Let p be what the provider's bucket holds, ℓ what the law believes of it, and S the cost of
// permits that were granted and whose calls have not arrived there. Granting moves cost from ℓ
// to S; a call that arrives takes it from S and from p; a permit that was not used leaves S,
// and ℓ gets it back only if its worker says so. So p ≥ ℓ + S stays true, and every call finds
// what it needs, however many workers there are, whatever the ways, and also when another
// keeper takes over: it begins with ℓ = 0, and p ≥ S holds for whatever S there is.
//
// # Turns
//
// The next permit is for the job that has had the least for its weight, and there for the
// worker whose turn it is; see turns.go.
//
// # Bounds
//
// Per limit [MaxWaiting] permits wait in the machine and [MaxInFlight] are out; [MaxLimits],
// [MaxPeers] bound the rest. Who is silent for permit.Forgotten is forgotten.
//
// Read it in this order: keeper.go (what it is told, and Ready), peer.go (who asks), turns.go
// (whose turn it is), limit.go (the machine's answers), report.go (what becomes of permits),
// status.go (what it shows).
package keeper
