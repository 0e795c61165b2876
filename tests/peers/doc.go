// Package peers tests the law against limiters that others wrote, over real HTTP. It is a
// module of its own, so that their modules are not among the product's.
//
//	run                 the script: starts, measures, stops; installs only with PEERS_INSTALL=1
//	peers_test.go       the law by the library, on a fast clock: what takes it long
//	prometheus_test.go  a run that a real Prometheus scrapes, and promtool's opinion
//	metrics_test.go     the page of metrics against Prometheus' own client; it needs no server
//	cmd/peers           the command as it was built, on the real clock, against a table of servers
//	servers             those servers, and how each counts
//
// The tests here are of nginx's limit_req, HAProxy's stick tables, headrace sim and Prometheus. They
// promise that no server runs, or is needed, unless PEERS is set: the script sets it,
// after it has started the servers on loopback.
//
//	batch.Stream, its clock ten times as fast ─▶ provider/openai ─┬─▶ nginx ───┬─▶ headrace sim, no limits
//	        │                                                     ├─▶ HAProxy ─┘
//	        ▼                                                     └─▶ headrace sim, limited
//	   makespan over the optimum, 429s
//
// Ten times as fast, the law sees the 600 requests a minute that it is meant for, while the
// servers count 100 a second. The law's quarter of an hour is over in a minute and a half.
package peers
