package batch

// order gives results back in the order of the input, or as they come.
//
//	ring:  [ 8 · 10 · · ]     next = 7: 8 and 10 are early, 7 is waited for
//
// Invariant: an index in the ring is within cap of next. It holds because each
// result that was not given back keeps a credit, and there are cap credits.
type order[In, Out any] struct {
	inOrder bool
	ring    []early[In, Out]
	next    int
}

type early[In, Out any] struct {
	result Result[In, Out]
	there  bool
}

func newOrder[In, Out any](inOrder bool, capacity int) *order[In, Out] {
	o := &order[In, Out]{inOrder: inOrder}
	if inOrder {
		o.ring = make([]early[In, Out], capacity)
	}
	return o
}

// push takes a result in, and gives one out if one is due.
func (o *order[In, Out]) push(r Result[In, Out]) (Result[In, Out], bool) {
	if !o.inOrder {
		return r, true
	}
	o.ring[r.Index%len(o.ring)] = early[In, Out]{r, true}
	return o.pop()
}

// pop gives the next result in order, if it is there.
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
