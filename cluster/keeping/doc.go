// Package keeping lets a process keep the limits of a cluster while it is its turn.
//
// An [Election] stands for keeper: it passes the facts from the bus and the store to a lease.Lease, and does what that
// decides. While it holds the lease it runs a [Keeper]. That is one goroutine that hears the workers' asks, lets a
// keeper.Keeper decide, and sends the result. [Epochs] finds past keepers by the store alone.
//
// A keeper gives nothing beyond its lease. Each keeper has an epoch of its own, higher than any before it. Everything
// that Run starts has ended when Run returns. The keeper's knowledge goes into the lease and the store, and the next
// keeper begins with it. The package knows nothing of jobs except their names. The caller supplies the scheduler that
// runs next to a keeper.
//
//	lease ◀─ read, write ─▶ Election ─ mint, look ─▶ keeper/epoch-<k>
//	                            │ while it is keeper
//	            ┌───────────────┼──────────────────┐
//	         Scheduler    Keeper:  keeper.Keeper   limits: what workers and people say of them
//	                     asks ─▶ gives, cools
package keeping
