// Package queue lets requests wait for their turn, and says how long that will take.
//
// It promises that one goroutine owns the order ([line.Line]), and that a request is refused at once if it would wait for
// too long, and not after the wait. It decides nothing about limits: it lets one request of a pool at a time
// ask the coordinator. The next one may when the call of that one has left. Where leave comes from afar, as in a
// cluster, the requests of a short time ask together ([Config].Ahead).
//
//	Enter ─▶ line ─turn─▶ batch.Do ─left─▶ the provider
//	   │       │             │ cooled, probed, retried there
//	   │       └─ News: so many before you, about so long
//	   └─ late: refused at once, with the forecast
//
// A forecast is the cost of what goes before, divided by the pace. The pace is the less of two: what
// the lane is believed to allow, and what has left recently while something waited.
package queue
