// Package batch runs one call per item against an API that limits its callers: as fast as
// the limits allow, every item exactly once.
//
// Each item taken from the input ends in exactly one result. A failed item is a result;
// only a failed run is an error. Once [Run] has returned, or the loop over [Stream] has
// been left in any way, nothing of the run is still running. Two sums in the [Summary]
// prove the first promise.
//
//	items ─▶ read ─▶ feed ─offer─▶ ┌─────────────┐ ─work─▶ workers ─▶ your function
//	                  ▲            │ coordinator │            │
//	                  │            └─────────────┘ ◀─settled──┤ (its result went out first)
//	                credit                ▲                   │
//	                  │                   └──handed over──────┘ (refused, or to be tried again)
//	                  │                                       │
//	              your loop ◀──────────results────────────────┘
//
// A worker decides by a pure function (retry.go) whether the end of a call is the end of
// the item. If it is, the result goes out, and then the worker notifies the coordinator. If
// it is not, the worker hands the item over and is free. Items wait in the coordinator, not
// in workers. The coordinator cools down, probes, climbs back slowly, and gives each item
// out again.
//
// The reader takes a credit before it reads an item from the input. The credit comes back
// after the caller has taken the result; credits come back some at a time. There are as
// many credits as results fit in their channel. So a worker never waits to deliver a
// result, and a slow caller slows the feed. A run drops each input together with its
// result: however slow one item is, the run holds no more inputs than there are credits.
//
// A run is as large as its work: it starts workers as calls need them.
//
// Code that the caller wrote may panic when the run calls it: the function, the input,
// the observer, Pool, Cost, ItemKey, Usage, an error's methods. Such a panic fails its
// item or is part of the run's error, as each option says. It never ends the process.
//
// Usual work needs no other package: the types of options and results ([Limits],
// [LaneConfig], [Kind], …) have names here too. Options set the speed of a run
// ([WithLimits], [WithConcurrency]), its retries ([WithMaxAttempts], [WithBackoff],
// [WithClassifier]) and its patience ([WithAttemptTimeout], [WithItemTimeout],
// [WithMaxFailures], [WithOutagePatience]). [WithDrain] ends a run early, and [WithGate]
// holds calls back. [WithObserver], [WithRetryHook] and [WithSummary] report on the run. A
// [Control] steers a run from outside. A [Shared] lets several runs keep to one account's
// limits, each with its [WithPriority]. [Do] makes a single call there, for programs that serve
// requests of their own.
//
// A run keeps nothing on disk. [WithMemory] and [WithMemorySaver] carry what a run learns
// about a provider over to the next process. Durable resume is the package
// batch/promptfile: it saves each result, and goes on where a run was killed.
//
// Goroutines share no data, so there are no locks. An item belongs to the goroutine that
// received it last.
package batch
