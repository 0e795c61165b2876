package machine

import "time"

// heap is a binary heap: the first element is on top. If the elements know their position, one
// in the middle can leave in O(log n).
//
// It exists because container/heap boxes each element in an interface, and these heaps are on
// the path of every refused call.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	moved  func(x T, pos int) // told each new position, -1 when out; may be nil
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) top() (x T) {
	if len(h.items) > 0 {
		x = h.items[0]
	}
	return x
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

func (h *heap[T]) pop() T {
	x := h.top()
	h.remove(0)
	return x
}

// firsts returns the n elements that come first, in order. It costs n·log n, whatever the size
// of the heap.
func (h *heap[T]) firsts(n int) []T {
	var first []T
	next := heap[int]{before: func(a, b int) bool { return h.before(h.items[a], h.items[b]) }}
	if len(h.items) > 0 {
		next.push(0)
	}
	for next.len() > 0 && len(first) < n {
		at := next.pop()
		first = append(first, h.items[at])
		for child := 2*at + 1; child <= 2*at+2 && child < len(h.items); child++ {
			next.push(child)
		}
	}
	return first
}

// remove takes out the element at pos.
func (h *heap[T]) remove(pos int) {
	var none T
	last := len(h.items) - 1
	out, moved := h.items[pos], h.items[last]
	h.items[last] = none // or the array would keep it alive
	h.items = h.items[:last]
	h.tell(out, -1)
	if pos < last {
		h.items[pos] = moved
		h.down(pos)
		h.up(pos)
	}
}

func (h *heap[T]) up(i int) {
	x := h.items[i]
	for i > 0 && h.before(x, h.items[(i-1)/2]) {
		h.set(i, h.items[(i-1)/2])
		i = (i - 1) / 2
	}
	h.set(i, x)
}

func (h *heap[T]) down(i int) {
	x, n := h.items[i], len(h.items)
	for child := 2*i + 1; child < n; child = 2*i + 1 {
		if child+1 < n && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, x)
}

func (h *heap[T]) set(i int, x T) {
	h.items[i] = x
	h.tell(x, i)
}

func (h *heap[T]) tell(x T, pos int) {
	if h.moved != nil {
		h.moved(x, pos)
	}
}

// An alarm is a moment at which a lane or a pool wants to be looked at again.
// Each has one, so that the driver needs one timer however many wait.
type alarm struct {
	at   time.Time
	seq  uint64 // of its setting: of two for one moment the older rings first
	pos  int    // in the machine's alarms; -1: not set
	lane *lane
	pool *pool
}

// alarms holds those that are set, the earliest on top.
type alarms struct {
	heap[*alarm]
	settings uint64
}

func newAlarms() alarms {
	return alarms{heap: heap[*alarm]{
		before: byMoment,
		moved:  func(a *alarm, pos int) { a.pos = pos },
	}}
}

func byMoment(a, b *alarm) bool {
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.seq < b.seq
}

// set moves an alarm to at, or sets it.
func (h *alarms) set(a *alarm, at time.Time) {
	h.clear(a)
	h.settings++
	a.at, a.seq = at, h.settings
	h.push(a)
}

// clear unsets an alarm; one that is not set may be cleared.
func (h *alarms) clear(a *alarm) {
	if a.pos >= 0 {
		h.remove(a.pos)
	}
}

// due removes and returns an alarm whose moment has come; nil if there is none.
func (h *alarms) due(now time.Time) *alarm {
	if a := h.top(); a != nil && !a.at.After(now) {
		return h.pop()
	}
	return nil
}
