// Package node is a process of a cluster. It works on jobs, keeps the limits when it is its turn,
// and serves people's requests about jobs.
//
// Everything that Work starts has ended when Work returns. No call leaves without a permit. All
// decisions lie in the packages that node joins: node itself waits, reads, writes and passes on.
//
//	           Join
//	            │
//	Work ───────┼──▶ worker: executor ─items─▶ batch.Stream ─▶ Caller     link: lanes ◀─▶ bus
//	            └──▶ keeping.Election ─(it is keeper)─▶ keeping.Keeper, and the scheduler here
//	Submit, Cancel, Watch, Fetch, Check, …  ─▶ the store and the bus
package node
