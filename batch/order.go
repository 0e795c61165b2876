package batch

// order gives results back in the order of the input, or as they come.
//
//	ring:  [ 8 · 10 · · ]     next = 7: 8 and 10 are early, 7 is waited for
//
// Invariant: an index in the ring is within cap of next. It holds because each result that
// was not given back keeps a credit, and there are cap credits.
type order[In, Out any] struct {
	inOrder bool
	cap     int
	ring    []early[In, Out] // as long as needed so far, at most cap
	next    int
}

type early[In, Out any] struct {
	result Result[In, Out]
	there  bool
}

func newOrder[In, Out any](inOrder bool, capacity int) *order[In, Out] {
	return &order[In, Out]{inOrder: inOrder, cap: capacity}
}

// push takes a result in, and returns one if one is due.
func (o *order[In, Out]) push(r Result[In, Out]) (Result[In, Out], bool) {
	if !o.inOrder {
		return r, true
	}
	if r.Index-o.next >= len(o.ring) {
		o.grow(r.Index - o.next + 1)
	}
	o.ring[r.Index%len(o.ring)] = early[In, Out]{r, true}
	return o.pop()
}

// grow makes the ring at least as long as needed, twice as long as before if cap allows it.
func (o *order[In, Out]) grow(needed int) {
	ring := make([]early[In, Out], min(o.cap, max(needed, 2*len(o.ring))))
	for _, e := range o.ring {
		if e.there {
			ring[e.result.Index%len(ring)] = e
		}
	}
	o.ring = ring
}

// pop returns the next result in order, if it is there.
func (o *order[In, Out]) pop() (r Result[In, Out], ok bool) {
	if !o.inOrder {
		return r, false
	}
	slot := &o.ring[o.next%len(o.ring)]
	if !slot.there {
		return r, false
	}
	r = slot.result
	*slot = early[In, Out]{}
	o.next++
	return r, true
}
