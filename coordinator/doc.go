// Package coordinator is the owner: one goroutine that alone decides which call
// may leave, and when.
//
// It promises never to wait for anybody: not for a worker, a reader, an observer, a log or a
// disk. It learns by messages, answers by messages, and reads the clock once for all the news
// that it finds when it looks. The pure package machine below makes the decisions; here are the
// goroutine, the channels and the timer.
//
//	                  ┌────────────── Run ──────────────┐
//	Offer ◀──leave─── │ for {                           │
//	      ──mailbox─▶ │   select { mailbox, timer }     │ ──work──▶ Session.Work
//	Settle,           │   machine.Step(now, each news)  │ ──news──▶ Session.News
//	HandOver ─mailbox▶│   ready := machine.Ready(now)   │
//	Status ──mailbox─▶│   dispatch(ready); allowOffers()│ ──reply─▶ the asker
//	                  │   setTimer() }                  │
//	                  └─────────────────────────────────┘
//
// Four things keep it from waiting:
//
//   - A grant is sent on a channel whose capacity is the run's concurrency, and
//     the machine never has more grants out than that.
//   - An answer is sent on a channel of capacity one that has one answer.
//   - A transition that finds no room is dropped and counted.
//   - An offer needs leave, and a run gets no leave while enough of its items
//     wait. Then its feed waits, not the owner, and not another run's feed.
//
// Runs are its clients: each opens a [Session]. Two runs on one coordinator share its lanes,
// and so their limits.
package coordinator
