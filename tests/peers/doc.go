// Package peers puts the law in front of limiters that others wrote, over real
// HTTP: nginx's limit_req and HAProxy's stick tables, beside headrace sim.
//
// It promises that nothing of it runs, or is needed, unless PEERS is set: the
// script run sets it, after it has installed and started the servers on loopback,
// and it stops them at the end.
//
//	batch.Stream, its clock ten times as fast ─▶ provider/openai ─┬─▶ nginx ───┬─▶ headrace sim, no limits
//	        │                                                     ├─▶ HAProxy ─┘
//	        ▼                                                     └─▶ headrace sim, limited
//	   makespan over the optimum, 429s
//
// Ten times as fast, the law sees the 600 requests a minute that it is meant for,
// while the servers count 100 a second: what takes the law a quarter of an hour is
// over in a minute and a half.
package peers
