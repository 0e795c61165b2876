// Package gates simulates servers of many shapes: each is a row of gates, and a
// call passes if all of them are open.
//
// It promises that each gate is also its own oracle: the same gate for a client that knows
// everything and that chance does not hit. Laws are compared with a clairvoyant's makespan
// through the oracles.
//
//	call ──▶ outage? ──▶ gate, gate, … ──all open──▶ each is charged ──▶ an answer, in its time
//	                        └──one is shut──▶ none is charged, and all learn of the refusal
//
//	Optimum: the n-th call goes when the last of the gates opens for it, and takes
//	as long as the n-th call that the server admits.
//
// The files: rate.go has the rate of a limit, and bucket.go the gates that save up. window.go has the gates that count,
// middleware.go those that count as middlewares do, and cap.go those that count the calls at work. chance.go and pool.go
// have the gates that refuse by chance or by load; replicas.go and scaler.go have those made of several. server.go
// judges calls, answer.go says how long they take, header.go what a server reports, truly or not, and clairvoyant.go has
// the optimum.
package gates
