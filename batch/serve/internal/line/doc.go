// Package line says which waiting request is next: a pure value, with the time as an argument.
//
// It promises that nothing in it runs by itself, and that each request that has entered leaves once: it
// goes, it has waited for too long, or it is taken out.
//
//	pool ─▶ class ─▶ client ─▶ tag ─▶ requests
//	        16:4:1   weights   1:1    the least patient first, then as they came
//
// Each pool has a line of its own. At each level the flows that have something waiting share what leaves
// by their weights, in the unit of the requests' costs. The others take what one does not use. A flow that comes back is not
// repaid for the time in which it had nothing waiting.
//
// The order is that of start-time fair queueing (Goyal, Vin, Cheng 1996). A flow's next request starts
// where its last one finished, or at the present virtual time if that is later. The request that starts
// first goes first. So a flow of weight w of W, with something waiting, has at least w/W of what leaves, less one
// request of each flow.
package line
