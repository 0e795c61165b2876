// Package bus is how the processes of a cluster talk to each other: a hub, which may lie in one of them, and a
// connection to it. It is the only package that knows NATS.
//
// It promises that everything that is asked of the bus ends by a deadline of its own, whatever the network and the
// hub do; that nothing is sent later than when it was said; that work is queued once, however often somebody queues it; and
// that whatever the bus has lost is made again by whoever finds it gone. It does not promise to keep anything: what
// must not be lost lies in the store.
//
//	worker ──▶ ┌───────────────── hub ─────────────────┐ ◀── worker, keeper
//	           │ messages   ask, give, cool             │      told to whoever listens now, and forgotten
//	           │            done, status, news          │
//	           │            hold?, tell                 │
//	           │ queue      hr.chunk.<job>.<n>          │      one message a subject; given out, heard of by
//	           │            hr.task.<job>.<n>           │      heartbeats, given out again after AckWait
//	           │ lease      one key, written by who     │      revisions that are never used twice
//	           │            knows its revision          │
//	           └───────────────────────────────────────┘
//
// Which file answers which question:
//
//	hub.go            a server in this process       hubconfig.go  where it listens, and how it is set
//	hubdir.go         what lies in its directory     hubcheck.go    is its store whole?
//	tls.go            who is let in, and by whom     address.go    what a join line says
//	role.go           what a token permits
//	bus.go, dial.go   a connection                   ensure.go     what must be there
//	queue.go          queue, count, fetch            delivery.go   heartbeat, done, put back
//	words.go, feed.go messages                       inquiry.go    who holds what?
//	leasekey.go       the lease                      check.go, judge.go  is this bus safe?
//
// # What is learned from a server
//
// Silence proves nothing, nor does an error: see [ErrNoAnswer] and [ErrGone]. A heartbeat that was answered was heard; whether the work
// is still ours it does not tell. An acknowledgement takes work out of the queue whoever says it. A single hub
// that was killed has what was queued and forgets what was given out: all of it is given out again. The claims ask
// whoever had it before. Three hubs know from each other what is given out.
//
// Each job has a consumer of its own, and tasks of all jobs have one. The jobs whose consumers are there are those that are
// offered to the workers.
//
// # Settings
//
// A hub syncs each write, so that what it has acknowledged survives a loss of power. A client asks whether the server is
// there every second and leaves it after three of silence; a write that hangs for a second
// ends the connection. What is said without one fails at once.
package bus
