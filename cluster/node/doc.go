// Package node is a process of a cluster: it works, it keeps the limits if it is its turn, and it
// does for people what they ask of jobs.
//
// It promises that whatever it starts has ended when Work returns; that no call leaves without a
// permit; and that everything which decides lies in the packages that it joins: what is here waits,
// reads, writes and passes on.
//
//	           Join
//	            │
//	Work ───────┼──▶ worker: executor ─items─▶ batch.Stream ─▶ Caller     link: lanes ◀─▶ bus
//	            └──▶ keeping.Candidate ─(it is keeper)─▶ keeping.Keeper, and the foreman here
//	Submit, Cancel, Watch, Fetch, Check, …  ─▶ the store and the bus
package node
