// Package batch runs one call per item against an API that limits its callers:
// as fast as the limits allow, every item exactly once.
//
// It promises that each item that was taken from the input ends in exactly one
// result, that a failed item is a result and only a failed run an error, and
// that when [Run] has returned, or the loop over [Stream] was left by whatever
// way, nothing of the run is running any more. The [Summary] proves the first
// by two sums.
//
//	items ─▶ read ─▶ feed ─offer─▶ ┌─────────────┐ ─work─▶ workers ─▶ your function
//	                  ▲            │ coordinator │            │
//	                  │            └─────────────┘ ◀─settled──┤ (its result went out first)
//	                credit                ▲                   │
//	                  │                   └──handed over──────┘ (refused, or to be tried again)
//	                  │                                       │
//	              your loop ◀──────────results────────────────┘
//
// A worker decides by a pure function (retry.go) whether the end of a call is
// the end of the item. If it is, the result goes out and the coordinator is
// told. If it is not, the worker hands the item over and is free: whoever waits,
// waits in the coordinator, which cools down, probes, climbs back slowly, and
// gives each item out again.
//
// An item takes a credit before it is read from the input, and gives it back when
// its result has been taken, some at a time. There are as many credits as results
// fit in their channel, so a worker never waits to deliver one, and a slow reader
// slows the feed. What a result was made of is let go with it: however slow one item is,
// no more inputs are held than there are credits.
//
// A run is as large as what it runs: workers are started as calls come for them.
//
// Whatever the caller has written and is called back (the function, the input, the
// observer, Pool, Cost, Usage, an error's methods) may panic: that is the failure of its
// item, or is said by the run's error, as each option tells, and never ends the process.
//
// Usual work needs no other package: what the options and results are made of ([Limits],
// [LaneConfig], [Kind], …) has its name here too. Options say how fast ([WithLimits],
// [WithConcurrency]), how often ([WithMaxAttempts], [WithBackoff], [WithClassifier]), how
// long ([WithAttemptTimeout], [WithItemTimeout], [WithMaxFailures], [WithOutagePatience],
// [WithDrain]), behind what
// ([WithGate]), and who hears of it ([WithObserver], [WithRetryHook], [WithSummary]); a [Control] steers a run
// from outside, and a [Shared] lets several keep to one account's limits, each with its
// [WithPriority].
//
// A run keeps nothing on disk. What is learned of a provider outlives the process by
// [WithMemory] and [WithMemorySaver]. Durable resume is the package batch/promptfile: it saves
// each result, and goes on where a run was killed.
//
// Nothing is shared between goroutines, so there are no locks. An item belongs
// to whoever received it last.
package batch
