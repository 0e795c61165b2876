// Package claim is the life of a chunk at one worker: what is to be asked, read, called, saved and said,
// and in which order, so that each item has one result in the end and is called again only where
// nobody can know that it was called.
//
// It promises that nothing in it runs by itself. There is no goroutine, channel, lock, clock or chance
// here: facts go in by [Machine.Step] with the time at which they are told, and all that follows
// from them comes out of [Machine.Ready]. The simulation in this package's tests runs the very code that a
// worker runs, in worlds where everything goes wrong.
//
//	queue ─Delivered─▶ ┌─────────────── Machine ───────────────┐ ─Fetch, Beat, Ack, Return─▶ queue
//	store ─Listed…───▶ │ a claim for each chunk at hand:       │ ─List, Create, Join…──────▶ store
//	peers ─Answered──▶ │ look, list, ask ─▶ name ─▶ read ─▶    │ ─Ask, Tell────────────────▶ peers
//	items ─Begun…────▶ │ work ─▶ close ─▶ join ─▶ ack ─▶ clean │ ─Go, Refuse───────────────▶ items
//	                   └───────────────────────────────────────┘
//
// What must hold, whatever the queue forgets and whoever dies, is frozen or cut off:
//
//  1. A part is made once, whole: of each item the first line that the journals have, in the order of the input.
//  2. A result counts when it is in the claim's journal and survives the loss of power.
//  3. The queue is told when the part is there, and journals are deleted after that.
//  4. Before a claim makes its journal it asks whoever has one. Who says nothing is dead, if the
//     bus was there all the time; who is taken for dead is told.
//  5. The later name holds the chunk. Who meets it stops calling at once; what flies is finished, and
//     saved in the claim's own journal.
//  6. Where the chunk may be another's by now (no heartbeat was acknowledged in time, or the bus was away),
//     no call leaves before a heartbeat was acknowledged and the journals were listed after it.
//
// Then of one item two calls are made only if the first one's worker was dead, frozen or cut off when it was
// asked, and had not saved the answer.
//
// Read it in this order: name.go, event.go (what a machine is told), action.go (what it answers),
// machine.go, fetch.go (of which jobs), claim.go, take.go (how a chunk comes to be worked on), beat.go (heartbeats and doubt), work.go
// (items), end.go.
package claim
