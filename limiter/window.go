package limiter

import "time"

// maxSlots bounds a window's ring: a minute in seconds is as fine as anyone asks.
const maxSlots = 60

// fewSlots is what the windows of this package have, unless a user asks for more. Their
// ring lies in the window itself, or each of thousands of lanes would have several more
// pieces of memory.
const fewSlots = 12

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
// and span. Slots are numbered from the first event; ring i%slots is slot i, for the
// last `slots` numbers before head, filling is the head, and sum is all that they hold.
//
// What an event touches stands first, and is one line of a processor's cache.
//
// The zero value has not begun. A copy is independent: what many points to is never
// written to, but replaced, once in a slot or when something is taken back.
type window struct {
	origin  time.Time
	width   time.Duration
	slots   int64 // 0: not begun
	head    int64
	sum     tally
	filling tally

	many *[maxSlots]tally // instead of few, where the slots are more; shared with copies
	few  [fewSlots]tally
}

func (w *window) begun() bool { return w.slots > 0 }

// begin starts an empty window at now.
func (w *window) begin(now time.Time, span time.Duration, slots int) {
	*w = window{origin: now, slots: int64(slots), width: max(1, span/time.Duration(slots))}
	if slots > fewSlots {
		w.many = new([maxSlots]tally)
	}
}

func (w *window) ring(slot int64) *tally {
	i := slot % w.slots
	if w.many != nil {
		return &w.many[i]
	}
	return &w.few[i]
}

// slotAt is the slot that now falls in; the head's if the clock went back.
func (w *window) slotAt(now time.Time) int64 {
	return w.slotSince(now.Sub(w.origin))
}

// slotSince is slotAt so long after the origin.
func (w *window) slotSince(since time.Duration) int64 {
	if since < w.width*time.Duration(w.head+1) { // nearly always, and saves the division
		return w.head
	}
	return int64(since / w.width)
}

func (w *window) add(now time.Time, failed bool) {
	if slot := w.slotAt(now); slot != w.head {
		w.forward(slot)
	}
	w.filling.total++
	w.sum.total++
	if failed {
		w.filling.failed++
		w.sum.failed++
	}
}

func (w *window) warm() uint64 {
	return uint64(w.slots) + uint64(w.filling.total)
}

// forward makes slot the head, and forgets what that leaves behind.
func (w *window) forward(slot int64) {
	w.own()
	*w.ring(w.head), w.filling = w.filling, tally{}
	for i := w.head + 1; i <= min(slot, w.head+w.slots); i++ {
		t := w.ring(i)
		w.sum.total -= t.total
		w.sum.failed -= t.failed
		*t = tally{}
	}
	w.head = slot
}

// own parts with what is shared with copies, before it is written to.
func (w *window) own() {
	if w.many != nil {
		many := *w.many
		w.many = &many
	}
}

// countAt is what the window holds when slot, at or after the head, is filling.
func (w *window) countAt(slot int64) tally {
	sum := w.sum
	for i := max(0, w.head-w.slots+1); i <= min(w.head, slot-w.slots); i++ {
		t := w.at(i)
		sum.total -= t.total
		sum.failed -= t.failed
	}
	return sum
}

// at is what a slot holds that is not forgotten.
func (w *window) at(slot int64) tally {
	return *w.slotOf(slot)
}

// count is what the window holds at now; nothing if it never began.
func (w *window) count(now time.Time) tally {
	if !w.begun() {
		return tally{}
	}
	return w.countAt(w.slotAt(now))
}

// takeBack forgets the n youngest events, which were failures all, and the failures of
// the youngest slots in which these are more than half. The answer is when the oldest of
// such slots began, since the origin; the end of the youngest if there is none.
func (w *window) takeBack(n uint32) (since time.Duration) {
	w.own()
	since = w.width * time.Duration(w.head+1)
	for slot := w.head; slot >= max(0, w.head-w.slots+1); slot-- {
		t := w.slotOf(slot)
		k := min(n, t.failed)
		if 2*t.failed > t.total {
			k, since = t.failed, w.width*time.Duration(slot)
		}
		if k == 0 {
			break
		}
		t.total, t.failed = t.total-k, t.failed-k
		w.sum.total, w.sum.failed = w.sum.total-k, w.sum.failed-k
		n -= min(n, k)
	}
	return since
}

func (w *window) slotOf(slot int64) *tally {
	if slot == w.head {
		return &w.filling
	}
	return w.ring(slot)
}
