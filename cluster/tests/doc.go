// Package tests tries the cluster as it is used: hubs, workers and customers are processes of
// the built command, and they are killed, frozen, cut off and robbed of their folders.
//
// It promises of each storm that it ends with the files that one process writes, that every call
// made twice was in somebody's hands when that somebody was struck, and that what it did can be
// done again: its seed is printed.
//
//	schedule (seeded) ─▶ fleet ─▶ hub ◀──link──▶ worker ─┐          a link is a proxy that can be
//	                       │       │             worker ─┤ calls     cut, slowed, or cut one way
//	                       │       └─ store ─────worker ─┤
//	                       ▼                             ▼
//	               blows: who was             judge: a provider with a strict bucket, which
//	               struck, and when           writes down each call: whose, when, how it ended
//	                       └───────── audit ─────────────┘
//
// Judge and schedule are in the tests' own process, so they outlive whatever is killed. A worker
// calls the judge below a path with its name in it, so the judge knows whose a call is.
//
// STORM_SEED=n repeats what a test printed. STORM=short, the default, runs what CI has time for;
// STORM=all has all storms in their short form; STORM=hour makes them long, and STORM=12m so long: 200 kills
// and more in the one that kills everybody.
// STORM_COMMAND names a command to be tried instead of the one that is built here, STORM_LOGS a
// folder in which what the processes say is left.
//
// They need Linux, which ends the processes with the test, and mounts a folder that can be full.
package tests
