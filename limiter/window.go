package limiter

import "time"

// maxSlots bounds a window's ring: a minute in seconds is as fine as anyone asks.
// The ring is an array, so that a window is a value that can be copied and never
// allocates.
const maxSlots = 60

// A tally counts what happened in one slot of a window.
type tally struct{ total, failed uint32 }

func (t tally) rate() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.failed) / float64(t.total)
}

// A window counts the events of the most recent span of time, in slots.
//
//	slot:   0     1     2     3     4     5      width each, from origin on
//	     │·····│·····│·····│·····│·····│··
//	                 └─ counted at 5 if there are 4 ─┘
//
// The youngest slot is filling, so what is counted reaches back between span−width
// and span. Slots are numbered from the first event; ring[i%slots] is slot i, for the
// last `slots` numbers up to head.
type window struct {
	begun  bool
	origin time.Time
	width  time.Duration
	slots  int64
	head   int64
	ring   [maxSlots]tally
}

// begin starts an empty window at now.
func (w *window) begin(now time.Time, span time.Duration, slots int) {
	*w = window{begun: true, origin: now, slots: int64(slots), width: max(1, span/time.Duration(slots))}
}

// slotAt is the slot that now falls in; the head's if the clock went back.
func (w *window) slotAt(now time.Time) int64 {
	return max(w.head, int64(now.Sub(w.origin)/w.width))
}

func (w *window) startOf(slot int64) time.Time {
	return w.origin.Add(time.Duration(slot) * w.width)
}

func (w *window) add(now time.Time, failed bool) {
	slot := w.slotAt(now)
	for i := w.head + 1; i <= min(slot, w.head+w.slots); i++ {
		w.ring[i%w.slots] = tally{}
	}
	w.head = slot
	t := &w.ring[slot%w.slots]
	t.total++
	if failed {
		t.failed++
	}
}

// countAt is what the window holds when slot, at or after the head, is filling.
func (w *window) countAt(slot int64) tally {
	var sum tally
	for i := max(0, slot-w.slots+1); i <= w.head; i++ {
		t := w.ring[i%w.slots]
		sum.total += t.total
		sum.failed += t.failed
	}
	return sum
}

// count is what the window holds at now; nothing if it never began.
func (w *window) count(now time.Time) tally {
	if !w.begun {
		return tally{}
	}
	return w.countAt(w.slotAt(now))
}
