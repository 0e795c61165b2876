// Package machine decides which call may leave, and when: the pure core of the
// coordinator.
//
// It promises that nothing in it runs by itself. There is no goroutine,
// channel, lock, clock or unseeded chance here: facts go in by [Machine.Step]
// with the time at which they are told, and all that follows from them comes
// out of [Machine.Ready]. The same facts at the same times give the same
// decisions, so a simulation of it is a test of it.
//
//	             ┌───────────────────── machine ──────────────────────┐
//	offered ────▶│ run ─▶ pool: waiting, returned, delayed, undecided │
//	settled ────▶│          │ draws on                                │──▶ Grants
//	handed over ▶│          ▼                                         │──▶ Transitions, Words
//	limits… ────▶│        lane: phase, quota, rate, ramp, breaker     │──▶ WakeAt
//	             └────────────────────────────────────────────────────┘
//
// Items wait in a pool; a pool draws on one or more lanes; a lane is one quota
// (provider, key, model), and is in one of four phases until it is stopped:
//
//	   ┌────────────────level known──────────────────┐
//	   ▼                                             │
//	Flowing ──refused, or the breaker opens──▶ Cooling ──over──▶ Probing ──passed──▶ Ramping ──▶ Flowing
//	                                              ▲                 │                   │
//	                                              └─────refused─────┴──────refused──────┘
//
// Not every refusal is the lane's affair: where its law finds that the item alone waits
// (chance struck it), or goes first (there was no place for it), the lane stays in its
// phase. A refusal that says busy is judged like one that says slow down; the breaker
// counts it only while the lane is being probed.
//
// Nor is every failure the item's. It is in doubt until another item is answered; an open
// breaker makes it nobody's. An item that has failed for good is undecided until it is known
// whether its lane is to blame. The rules are at the head of blame.go.
//
// A lane may be led from outside: its law was made by somebody else ([LaneConfig].Maker),
// hears how each call ended ([Leader]) and hears words ([Told]), and nothing else decides.
// Such a lane flows until its law stops it, or fails ([LawError]). [Ready].Words has the words of laws to the
// outside. A machine that takes over from another one hears the ends of that one's calls
// ([Overheard]).
//
// Invariants, checked after every step of the simulation (sim_test.go):
//
//  1. Cooling grants nothing.
//  2. Probing has at most one call of its epoch in flight.
//  3. Grants never exceed window, bucket or concurrency.
//  4. An item is in exactly one place; each hand-over is answered by exactly one
//     new grant, or by the item's end.
//  5. Epoch and escalation rise only on news of the present epoch, and not on that
//     of an item that waits alone.
//  6. If anyone waits and nothing is in flight, there is a wake-up.
//  7. First come, first served in a pool, but for items that wait alone, after a
//     failure or a refusal, or are undecided: they are overtaken until they are due,
//     and not granted before. Parked before those, those before waiting. Of those that
//     come back, suspects go last: they failed while others were answered. Fewer failed
//     probes go first. Items that have failed take turns with those that were never
//     called. So do probes of an open breaker, beginning with one that was never called.
//     A large item is not overtaken.
//     Pools and runs that share a lane take turns on it, and the one that waits first
//     has the next call.
//  8. The machine's counts equal the world's.
//  9. Every debt is bounded: no wait computed exceeds its cap.
//  10. A lane that was heard (answered or refused once, also by an earlier machine) waits
//     behind its breaker when calls break, until nothing was answered for
//     [Config].OutagePatience. One that never was is given up if and only if for
//     [Config].FirstAnswer its calls have all broken in one way, enough of them to open
//     its breaker, three one after the other, and none is under way that may yet be
//     answered. [AlikeError] is apart from both.
//  11. A run is held by exactly one [Bound] at any time: its [Ledger] adds up to the
//     time since it was opened.
//  12. A lane that is led flows, or was stopped by its law, or because that failed. Each call of its own is ended
//     to that law once, as it was told; and after each decision a law that speaks has been
//     asked since anything has changed on its lane.
//  13. An item that was handed over is released as failed only if its outcome says that
//     the item is to blame, if another was answered whose call left later, or if nobody
//     is left to ask: each call under way is overdue, and nothing waits. Exempt are lanes
//     that are led, and probes of a run that keeps going.
//
// Read it in this order: event.go (what it is told), machine.go (Step and
// Ready), life.go (an item's way), pool.go, lane.go, line.go (whose turn it is), recovery.go (what a lane
// learns), blame.go (whose a failure is), unanswered.go (outages, overdue calls),
// firstanswer.go (when a lane is given up unheard), probe.go (its way back), memory.go
// and item_memory.go (what is known after a restart), overheard.go (what it learns of
// another's calls), outside.go (when it is led), foreign.go (what its law may break), longwait.go, status.go and trace.go
// (what it shows). Or read the stories in testdata, which tell the same by example.
package machine
