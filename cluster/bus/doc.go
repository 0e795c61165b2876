// Package bus connects the processes of a cluster: it holds a hub, which may run in one of them, and connections
// to it. It is the only package that knows NATS.
//
// Every request to the bus ends by a deadline of its own, whatever the network and the hub do. A message is
// sent at once or not at all. Work is queued once, however often processes queue it. A process that finds a part
// of the bus missing makes it again. The bus does not promise to keep anything: data that must not be lost lies
// in the store.
//
//	worker ──▶ ┌───────────────── hub ─────────────────┐ ◀── worker, keeper
//	           │ messages   ask, give, cool             │      sent to current listeners, then forgotten
//	           │            done, status, news          │
//	           │            hold?, tell                 │
//	           │ queue      hr.chunk.<job>.<n>          │      one message a subject; given out, kept by
//	           │            hr.task.<job>.<n>           │      heartbeats, given out again after AckWait
//	           │ lease      one key, written over the   │      revisions that are never used twice
//	           │            revision that was seen      │
//	           └───────────────────────────────────────┘
//
// Which file answers which question:
//
//	hub.go            a server in this process       hubconfig.go  where it listens, and how it is set
//	hubdir.go         what lies in its directory     tls.go        who is let in, and by whom
//	address.go        what a join line says          role.go       what a token permits
//	bus.go            a connection                   ensure.go     what must be there
//	queue.go          queue, count, fetch; heartbeat, done, put back
//	messages.go       messages, and who holds what   hubcounts.go  what goes through a hub
//	leasekey.go       the lease                      check.go      is this bus safe?
//
// # What is learned from a server
//
// Silence proves nothing, nor does an error: see [ErrNoAnswer] and [ErrGone]. An answered heartbeat was received, but does
// not say whether the work is still ours. An acknowledgement takes work out of the queue, no matter which worker sends it.
// A killed single hub keeps the queue but forgets its deliveries, so it gives all of the work out again. The new claims
// ask the earlier holders. Three hubs share the knowledge of what is given out.
//
// Each job has a consumer of its own, and the tasks of all jobs share one. Workers are offered the jobs whose consumers
// exist.
//
// # Settings
//
// A hub syncs each write, so acknowledged messages survive a loss of power. A client pings the server
// every second and leaves it after three seconds of silence. A write that hangs for a second ends the
// connection. Sending without a connection fails at once.
package bus
