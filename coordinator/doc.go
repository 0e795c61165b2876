// Package coordinator is the owner: one goroutine that alone decides which call
// may leave, and when.
//
// It promises never to wait for anybody: not for a worker, a reader, an
// observer, a log or a disk. It learns by messages, answers by messages, and
// reads the clock once for all the news that it finds when it looks. What it
// decides, and why, is the business of the pure package machine below it; here
// are the goroutine, the channels and the timer.
//
//	Offer ──offers──▶ ┌────────────── Run ──────────────┐
//	                  │ for {                           │
//	Settle,           │   select { mailbox, offers,     │ ──work──▶ Session.Work
//	HandOver ─mailbox▶│            timer }              │ ──news──▶ Session.News
//	                  │   machine.Step(now, each news)  │
//	Status ──mailbox─▶│   ready := machine.Ready(now)   │ ──reply─▶ the asker
//	                  │   dispatch(ready); arm(timer)   │
//	                  └─────────────────────────────────┘
//
// Four things keep it from waiting:
//
//   - A grant is sent on a channel whose capacity is the run's concurrency, and
//     the machine has never more grants out than that.
//   - An answer is sent on a channel of capacity one that has one answer.
//   - A transition that finds no room is dropped and counted.
//   - The door for offers is shut (a nil channel in the select) while enough
//     items wait; then the feed waits, not the owner.
//
// Runs are its clients: each opens a [Session]. Two runs on one coordinator
// share its lanes, and so their limits.
package coordinator
