// Package claim decides the life of a chunk at one worker: when to ask, read, call, save and announce. In the
// end each item has one result. An item is called again only where nobody can know that it was called.
//
// Nothing in the package runs by itself. It has no goroutine, channel, lock, clock or chance: facts go in by
// [Machine.Step] with their time, and everything that follows comes out of [Machine.Ready]. The simulation in
// this package's tests runs the very code that a worker runs, in worlds where everything goes wrong.
//
//	queue ─Delivered─▶ ┌─────────────── Machine ───────────────┐ ─Fetch, Beat, Ack, Return─▶ queue
//	store ─Listed…───▶ │ a claim for each chunk at hand:       │ ─List, Create, Join…──────▶ store
//	peers ─Answered──▶ │ look, list, ask ─▶ name ─▶ read ─▶    │ ─Ask, Tell────────────────▶ peers
//	items ─Begun…────▶ │ work ─▶ close ─▶ join ─▶ ack ─▶ clean │ ─Go, Refuse───────────────▶ items
//	                   └───────────────────────────────────────┘
//
// These rules hold, whatever the queue forgets and whichever worker dies, freezes or is cut off:
//
//  1. A part is made once, whole: it has the first line of each item in the journals, in the order of the input.
//  2. A result counts once it is in the claim's journal and survives a loss of power.
//  3. The part exists before the claim reports to the queue, and journals are deleted after that.
//  4. Before a claim makes its journal it asks the workers that have one. A silent worker counts as dead, if
//     the bus was up all the time. The claim also notifies the workers that it takes for dead.
//  5. The later name holds the chunk. A claim that meets a later name stops calling at once. Its calls in
//     flight finish, and are saved in its own journal.
//  6. The chunk may be another's by now if no heartbeat was acknowledged in time, or the bus was away. Then no
//     call leaves before a heartbeat is acknowledged and the journals are listed after it.
//
// An item is then called twice only in one case: its first worker had not saved the answer, and was dead,
// frozen or cut off when it was asked.
//
// Read it in this order: event.go (a machine's input, and its output), machine.go (with the choice of jobs), claim.go,
// take.go (from delivery to work), beat.go (heartbeats and doubt), work.go (items, and the end).
package claim
