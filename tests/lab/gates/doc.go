// Package gates simulates servers of many shapes: each is a row of gates, and a
// call passes if all of them are open.
//
// It promises that each gate is also its own oracle: the same gate for one who
// knows everything and whom chance does not hit. A clairvoyant's makespan through
// the oracles is what a law is measured by.
//
//	call ──▶ outage? ──▶ gate, gate, … ──all open──▶ each is charged ──▶ an answer, in its time
//	                        └──one is shut──▶ none is charged, and all hear of the refusal
//
//	Optimum: the n-th call goes when the last of the gates opens for it, and takes
//	as long as the n-th call that the server admits.
//
// What depends on the rate of a limit is in rate.go; what saves up in bucket.go;
// what counts in window.go, and as middlewares do in middleware.go; what counts those at work in cap.go; what refuses by
// chance or by load in chance.go and pool.go; what is made of several in
// replicas.go and scaler.go. server.go judges calls, answer.go says how long they
// take, header.go what a server tells, truly or not, and clairvoyant.go is the
// optimum.
package gates
