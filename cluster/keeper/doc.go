// Package keeper owns the limits of an organisation. Every caller under one of them asks the
// keeper, and no call leaves without its permit.
//
// Nothing in the package runs by itself: there is no goroutine, channel, lock, clock or
// unseeded chance here. Facts go in by Heard, Job and Limit, each with its time. Everything
// that follows from them comes out of Ready. The same facts at the same times give the same
// permits.
//
//	Ask ─▶ peer: its wants ─▶ turns ─▶ ┌───────────────────────┐ ─▶ Give, at most each 25 ms
//	       peer: its reports ────────▶ │ the core's machine,   │
//	Job, Limit ──────────────────────▶ │ and its law           │ ─▶ Cool, at once
//	                                   └───────────────────────┘
//
// The keeper holds one [machine.Machine], and each permit is an item of it. The keeper offers
// the item when a worker's turn comes. The machine grants it when the law lets a call leave.
// The keeper settles it with the outcome that the worker reports. So the core supplies the law,
// the phases, waves and probes, the breaker, a server's own waits and the bound on calls in
// flight.
//
//	offered ─▶ waiting ─granted─▶ outgoing ─given─▶ given ─▶ sent ─▶ ended
//	              │ withdrawn        │ a wave          ├─ unused: its charge comes back
//	              ▼                  ▼                 └─ no word for permit.Forgotten: its charge is lost
//	             over               over
//
// # Why there is no burst
//
// Let p be the level of the provider's bucket and ℓ the law's estimate of it. Let S be the cost
// of granted permits whose calls have not arrived at the provider. Granting moves cost from ℓ
// to S; a call that arrives takes it from S and from p. An unused permit leaves S, and ℓ gets
// its cost back only if its worker says so. So p ≥ ℓ + S stays true, and every call finds what
// it needs. That holds for any number of workers and any delays. It also holds when another
// keeper takes over, as that one begins with ℓ = 0, and p ≥ S holds for any S.
//
// # Turns
//
// The next permit is for the job that has had the least for its weight, and there for the
// worker whose turn it is; see turns.go.
//
// # Bounds
//
// Per limit at most [MaxWaiting] permits wait in the machine, and at most [MaxInFlight] are
// out. [MaxLimits] and [MaxPeers] bound the rest. The keeper forgets a worker that is silent
// for permit.Forgotten.
//
// Read it in this order: keeper.go (the facts that go in, Ready, and the status it shows), peer.go (the workers
// that ask), turns.go (whose turn it is), limit.go (the machine's answers), report.go (the ends of permits).
package keeper
