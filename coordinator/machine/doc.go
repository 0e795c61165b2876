// Package machine decides which call may leave, and when: the pure core of the
// coordinator.
//
// It promises that nothing in it runs by itself. There is no goroutine, channel, lock, clock or
// unseeded chance here. Facts go in by [Machine.Step] with the time at which they become known,
// and all that follows from them comes out of [Machine.Ready]. The same facts at the same times
// give the same decisions, so a simulation of it is a test of it.
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
// Not every refusal is the lane's affair. If its law finds that the item alone waits (chance struck
// it), or goes first (there was no place for it), the lane stays in its phase. A refusal that says busy
// is judged like one that says slow down; the breaker counts it only while the lane is being probed.
//
// Nor is every failure the item's. It is in doubt until another item is answered; an open breaker makes
// it nobody's. An item that has failed for good is undecided until the machine knows whether its lane
// is to blame. The rules are at the head of blame.go.
//
// A lane may be led from outside: its law was made by somebody else ([LaneConfig].Maker), hears how
// each call ended ([Leader]) and hears words ([Delivered]), and nothing else decides. Such a lane flows
// until its law stops it, or fails ([LawError]). [Ready].Words has the words of laws to the outside. A
// machine that takes over from another one hears the ends of that one's calls ([Overheard]).
//
// People may change the limits of lanes, and the concurrency and the budget of a run, at any time. What is
// in flight then ends as it does.
//
// Invariants, checked in the simulation (sim_test.go):
//
//  1. Cooling grants nothing.
//  2. Probing has at most one call of its epoch in flight.
//  3. Grants never exceed window, bucket or concurrency.
//  4. An item is in exactly one place; each hand-over is answered by exactly one
//     new grant, or by the item's end.
//  5. Epoch and escalation rise only on news of the present epoch, and not on that
//     of an item that waits alone.
//  6. If anyone waits and nothing is in flight, there is a wake-up.
//  7. Items of a pool go first come, first served. Items that wait alone, after a
//     failure or a refusal, or are undecided are excepted: others overtake them until they
//     are due, and they are not granted before. Parked items go before those, and those
//     before waiting ones. Among items that come back, suspects go last: they failed while
//     others were answered. Fewer failed probes go first. Items that have failed take turns
//     with those that were never called. So do probes of an open breaker, beginning with
//     an item that was never called. Nothing overtakes a large item.
//     Pools and runs that share a lane take turns on it, and the one that waits first
//     has the next call. No pool of a run with room waits in a lane's line while the others there have
//     more than a few rounds of calls.
//  8. The machine's counts equal the world's.
//  9. Every debt is bounded: no wait computed exceeds its cap.
//  10. A lane that was heard (answered or refused once, also by an earlier machine) waits
//     behind its breaker when calls break, until nothing was answered for
//     [Config].OutagePatience. A lane that was never heard is given up under exactly these
//     conditions: for [Config].FirstAnswer its calls have all broken in one way, enough of
//     them to open its breaker, three one after the other, and no call is under way that
//     may yet be answered. [AlikeError] is independent of both.
//  11. A run is held by exactly one [Bound] at any time: its [Ledger] adds up to the
//     time since it was opened.
//  12. A remote lane flows until its law stops it, or fails. The law hears the end of
//     each call of its own once, in the words of the caller. After each decision, the machine
//     has asked each law that speaks since the latest change on its lane.
//  13. An item that was handed over is released as failed in three cases only. Its outcome
//     says that the item is to blame; or another item was answered whose call left later; or
//     no call can decide the question any more, as each one under way is overdue, and nothing
//     waits. Exempt are remote lanes, and probes of a run that keeps going.
//  14. A call of a run with a budget leaves only if its price fits into what is neither spent nor
//     reserved nor in doubt, and no other item of the run waits for that money. Reserved is the sum over its calls in flight. So a run costs no more
//     than its budget and what calls have cost beyond their price.
//
// Read it in this order: event.go (the facts it takes), config.go, machine.go (Step and Ready), item.go (an item's
// way), run.go, money.go (its budget), pool.go, tiers.go (which lanes of a pool), lane.go, line.go (whose turn it is),
// account.go (lanes that stop together), learn.go (what a lane learns from a call),
// recovery.go (its way back), blame.go (whose a failure is), outage.go (overdue calls, outages, and when
// a lane is given up unheard), memory.go (what survives a restart), remote.go (laws of other packages,
// and lanes that they lead), longwait.go and status.go (what it shows). Or read the stories in testdata,
// which show the same by example.
package machine
