// Package keeping has a process keep the limits of a cluster while it is its turn.
//
// A [Candidate] stands for keeper: it passes what the bus and the store say to a lease.Lease, and does what that decides.
// While it holds the lease it runs a [Keeper]: one goroutine that hears what workers ask, has a keeper.Keeper
// decide, and says what follows. [Epochs] says which keepers there were, by the store alone.
//
// It promises that a keeper gives nothing beyond its lease, that each keeper has an epoch of its own, higher than any
// before it, and that all it has started has ended when Run returns. What it knows goes into the lease and into the
// store, and the next keeper begins with it. It knows nothing of jobs but their names: the foreman that runs beside a
// keeper is the caller's.
//
//	lease ◀─ read, write ─▶ Candidate ─ mint, look ─▶ keeper/epoch-<k>
//	                            │ while it is keeper
//	            ┌───────────────┼──────────────────┐
//	         Foreman     Keeper: keeper.Keeper   limits: what workers and people say of them
//	                     asks ─▶ gives, cools
package keeping
