package line

import (
	"container/heap"
	"math"
	"slices"
)

// A flow is a node of the tree. One that has flows below it shares what leaves among them. A leaf holds the
// requests of one tag.
//
// Invariants: a flow is among the active ones of its parent if and only if a request below it may go. n and cost
// are the sums over all requests below.
type flow struct {
	parent *flow // nil: it is a pool
	name   string
	weight float64
	client *client // of a client's flow; nil: none of its requests waits, or the flow is of another level
	link   int     // its place among the client's flows

	start, finish float64 // in virtual time: of its next request, and of its last
	activeIndex   int     // in its parent's active flows; -1: it is not
	since         uint64  // when it became active

	active   flows
	children map[string]*flow
	virtual  float64 // the start of the latest request that has gone
	sweepAt  int     // how many flows below are kept before the idle ones are dropped

	requests requests // of a leaf

	waiting int     // requests that wait
	cost    float64 // of all of them
}

// minSweep is the number of idle flows that are always kept: dropping so few saves nothing.
const minSweep = 64

// maxIdle is from how many flows on the idle ones are dropped whatever their past. Names that come once each start all at the same
// virtual time, which then stands still: their past would matter for ever. It is a request for each at most.
const maxIdle = 1024

func newFlow(parent *flow, name string, weight float64) *flow {
	return &flow{parent: parent, name: name, weight: weight, activeIndex: -1, sweepAt: minSweep}
}

// child returns the flow of that name, which has the weight from now on.
func (f *flow) child(name string, weight float64) *flow {
	c := f.children[name]
	if c == nil {
		f.sweep()
		if f.children == nil {
			f.children = map[string]*flow{}
		}
		c = newFlow(f, name, weight)
		f.children[name] = c
	}
	c.weight = weight
	return c
}

// sweep drops idle flows, whose past does not matter any more: they would start at the present virtual time.
func (f *flow) sweep() {
	if len(f.children) < f.sweepAt {
		return
	}
	many := len(f.children) >= maxIdle
	for name, c := range f.children {
		if c.waiting == 0 && (c.finish <= f.virtual || many) && c.client == nil {
			delete(f.children, name)
		}
	}
	f.sweepAt = max(minSweep, 2*len(f.children))
}

// root returns the pool's flow.
func (f *flow) root() *flow {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// mayGo reports whether a request below f may go.
func (f *flow) mayGo() bool {
	return len(f.active)+len(f.requests) > 0 && !f.client.isFull()
}

// updateActive makes f and the flows above it active if a request below may go, and inactive if none may.
func (f *flow) updateActive(seq uint64) {
	for ; f.parent != nil; f = f.parent {
		p := f.parent
		switch may := f.mayGo(); {
		case may && f.activeIndex < 0:
			f.start, f.since = max(f.finish, p.virtual), seq
			heap.Push(&p.active, f)
		case !may && f.activeIndex >= 0:
			heap.Remove(&p.active, f.activeIndex)
		}
	}
}

// addWaiting adds n requests and their cost to f and the flows above it; negative numbers take away.
func (f *flow) addWaiting(n int, cost float64) {
	for ; f != nil; f = f.parent {
		f.waiting += n
		if f.cost += cost; f.waiting == 0 {
			f.cost = 0 // sums of floats do not quite return to it
		}
	}
}

// next finds the request that goes next, and charges it to the flows on its way.
func (f *flow) next() *Request {
	if len(f.requests) > 0 {
		return f.requests[0]
	}
	c := f.active[0]
	f.virtual = c.start
	r := c.next()
	c.finish = c.start + r.cost/c.weight
	c.start = c.finish
	heap.Fix(&f.active, c.activeIndex)
	return r
}

// estimateBefore estimates what goes before a request of f, besides the n requests and the cost before it in f
// itself. It adds what f's siblings send until f has sent that much.
func (f *flow) estimateBefore(n int, cost float64) (int, float64) {
	reached := f.start + cost/f.weight
	for _, o := range f.parent.active {
		if o == f || o.start > reached || o.start == reached && f.goesBefore(o) {
			continue
		}
		mean := o.cost / float64(o.waiting)
		k := min(o.waiting, max(1, int(math.Ceil((reached-o.start)*o.weight/mean))))
		n, cost = n+k, cost+float64(k)*mean
	}
	return n, cost
}

// goesBefore reports whether f goes before o if both start together: the heavier flow does, or the older one.
func (f *flow) goesBefore(o *flow) bool {
	if f.weight != o.weight {
		return f.weight > o.weight
	}
	return f.since < o.since
}

// leaves calls visit for each leaf with requests that wait, in a fixed order.
func (f *flow) leaves(visit func(*flow)) {
	if len(f.requests) > 0 {
		visit(f)
	}
	for _, c := range f.active {
		c.leaves(visit)
	}
}

// appendAll appends the requests that wait below f to a list, also those that may not go, in any order.
func (f *flow) appendAll(to []*Request) []*Request {
	to = append(to, f.requests...)
	for _, c := range f.children {
		to = c.appendAll(to)
	}
	return to
}

// sorted returns the requests of a leaf in their order.
func (f *flow) sorted() []*Request {
	all := slices.Clone(f.requests)
	slices.SortFunc(all, func(a, b *Request) int {
		if a.goesBefore(b) {
			return -1
		}
		return 1
	})
	return all
}

// flows is a heap; the one whose next request starts first is on top.
type flows []*flow

func (h flows) Len() int { return len(h) }

func (h flows) Less(i, j int) bool {
	if h[i].start != h[j].start {
		return h[i].start < h[j].start
	}
	return h[i].goesBefore(h[j])
}

func (h flows) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].activeIndex, h[j].activeIndex = i, j
}

func (h *flows) Push(x any) {
	f := x.(*flow)
	f.activeIndex = len(*h)
	*h = append(*h, f)
}

func (h *flows) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h, f.activeIndex = old[:len(old)-1], -1
	return f
}

// requests is a heap; the one that goes next is on top.
type requests []*Request

func (h requests) Len() int           { return len(h) }
func (h requests) Less(i, j int) bool { return h[i].goesBefore(h[j]) }

func (h requests) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *requests) Push(x any) {
	r := x.(*Request)
	r.heapIndex = len(*h)
	*h = append(*h, r)
}

func (h *requests) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h, r.heapIndex = old[:len(old)-1], -1
	return r
}

// patience is a heap; the request that must leave first is on top.
type patience []*Request

func (h patience) Len() int           { return len(h) }
func (h patience) Less(i, j int) bool { return h[i].Latest.Before(h[j].Latest) }

func (h patience) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].patienceIndex, h[j].patienceIndex = i, j
}

func (h *patience) Push(x any) {
	r := x.(*Request)
	r.patienceIndex = len(*h)
	*h = append(*h, r)
}

func (h *patience) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h, r.patienceIndex = old[:len(old)-1], -1
	return r
}
