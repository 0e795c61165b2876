// Package servers starts the servers that headrace run is measured against, each on a port
// of its own of 127.0.0.1, and counts their answers.
//
//	reference.go    strict servers of our own: chance, a cap, a bucket
//	middleware.go   throttled, chi's Throttle, httprate, ulule/limiter before a backend
//	nginx.go        limit_req and limit_conn, a process each
//	haproxy.go      stick tables, maxconn with a queue, chance, a process each
//	llmd.go         a server of ours that refuses as llm-d-inference-sim does
//	backend.go      what stands behind them: an answer after its time
//	tally.go        calls, answers, refusals and faults, as the server counted them
//
// It promises that a Peer counts only for itself, that stopping it stops everything that it
// started, and that a server that is not on this machine is an ErrAbsent.
package servers
