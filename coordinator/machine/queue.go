package machine

// fifo is a line of items, linked through the items themselves, so that one in
// the middle can leave (a withdrawal) without a search and without a hole.
//
//	first ⇄ item ⇄ item ⇄ last
//
// Invariant: an item is in at most one fifo or heap at a time; its place says
// which kind.
type fifo struct {
	first, last *Item
	n           int
}

func (q *fifo) push(it *Item) {
	it.prev, it.next = q.last, nil
	if q.last == nil {
		q.first = it
	} else {
		q.last.next = it
	}
	q.last = it
	q.n++
}

func (q *fifo) pop() *Item {
	it := q.first
	if it != nil {
		q.remove(it)
	}
	return it
}

func (q *fifo) remove(it *Item) {
	if it.prev == nil {
		q.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		q.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
	q.n--
}

// byTurn orders items that come back: refused ones first, and those that failed while others
// were answered last; then those that failed fewer probes first. Within each group it is the
// order of the input, in which they first came.
func byTurn(a, b *Item) bool {
	if (a.place == Parked) != (b.place == Parked) {
		return a.place == Parked
	}
	if a.suspect() != b.suspect() {
		return b.suspect()
	}
	if a.probed != b.probed {
		return a.probed < b.probed
	}
	return a.Seq < b.Seq
}

// byDue orders items in backoff.
func byDue(a, b *Item) bool {
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return a.Seq < b.Seq
}

func byExpiry(a, b *Item) bool { return a.Expires.Before(b.Expires) }

func itemMoved(it *Item, pos int) { it.pos = int32(pos) }

func expiryMoved(it *Item, pos int) { it.timed = int32(pos) + 1 }
