package limiter

import "time"

// maxSlots bounds the ring of tallies: a minute in seconds is as fine as anyone asks.
const maxSlots = 60

// fewSlots is what the tallies of this package have, unless a user asks for more. Their
// ring lies in the value itself, or each of thousands of lanes would have several more
// pieces of memory.
const fewSlots = 12

// A tally counts what happened in one slot of time.
type tally struct{ total, failed uint32 }

func (t tally) rate() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.failed) / float64(t.total)
}

// Tallies count the events of the most recent span of time, in slots.
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
type tallies struct {
	origin  time.Time
	width   time.Duration
	slots   int64 // 0: not begun
	head    int64
	sum     tally
	filling tally

	many *[maxSlots]tally // instead of few, where the slots are more; shared with copies
	few  [fewSlots]tally
}

// part parts a copy from what it was copied from.
func (c *tallies) part() {
	if c.many != nil {
		own := *c.many
		c.many = &own
	}
}

func (c *tallies) begun() bool { return c.slots > 0 }

// begin starts empty ones at now.
func (c *tallies) begin(now time.Time, span time.Duration, slots int) {
	*c = tallies{origin: now, slots: int64(slots), width: max(1, span/time.Duration(slots))}
	if slots > fewSlots {
		c.many = new([maxSlots]tally)
	}
}

func (c *tallies) ring(slot int64) *tally {
	i := slot % c.slots
	if c.many != nil {
		return &c.many[i]
	}
	return &c.few[i]
}

// slotAt is the slot that now falls in; the head's if the clock went back.
func (c *tallies) slotAt(now time.Time) int64 {
	return c.slotSince(now.Sub(c.origin))
}

// slotSince is slotAt so long after the origin.
func (c *tallies) slotSince(since time.Duration) int64 {
	if since < c.width*time.Duration(c.head+1) { // nearly always, and saves the division
		return c.head
	}
	return int64(since / c.width)
}

// add counts an event that long after the origin.
func (c *tallies) add(since time.Duration, failed bool) {
	if slot := c.slotSince(since); slot != c.head {
		c.forward(slot)
	}
	c.filling.total++
	c.sum.total++
	if failed {
		c.filling.failed++
		c.sum.failed++
	}
}

func (c *tallies) warm() uint64 {
	return uint64(c.slots) + uint64(c.filling.total)
}

// forward makes slot the head, and forgets what that leaves behind.
func (c *tallies) forward(slot int64) {
	c.own()
	*c.ring(c.head), c.filling = c.filling, tally{}
	for i := c.head + 1; i <= min(slot, c.head+c.slots); i++ {
		t := c.ring(i)
		c.sum.total -= t.total
		c.sum.failed -= t.failed
		*t = tally{}
	}
	c.head = slot
}

// own parts with what is shared with copies, before it is written to.
func (c *tallies) own() {
	if c.many != nil {
		many := *c.many
		c.many = &many
	}
}

// countAt is what they hold when slot, at or after the head, is filling.
func (c *tallies) countAt(slot int64) tally {
	sum := c.sum
	for i := max(0, c.head-c.slots+1); i <= min(c.head, slot-c.slots); i++ {
		t := c.at(i)
		sum.total -= t.total
		sum.failed -= t.failed
	}
	return sum
}

// at is what a slot holds that is not forgotten.
func (c *tallies) at(slot int64) tally {
	return *c.slotOf(slot)
}

// count is what they hold at now; nothing if they never began.
func (c *tallies) count(now time.Time) tally {
	if !c.begun() {
		return tally{}
	}
	return c.countAt(c.slotAt(now))
}

// takeBack forgets the n youngest events, which were failures all, and the failures of
// the youngest slots in which these are more than half. The answer is when the oldest of
// such slots began, since the origin; the end of the youngest if there is none.
func (c *tallies) takeBack(n uint32) (since time.Duration) {
	c.own()
	since = c.width * time.Duration(c.head+1)
	for slot := c.head; slot >= max(0, c.head-c.slots+1); slot-- {
		t := c.slotOf(slot)
		k := min(n, t.failed)
		if 2*t.failed > t.total {
			k, since = t.failed, c.width*time.Duration(slot)
		}
		if k == 0 {
			break
		}
		t.total, t.failed = t.total-k, t.failed-k
		c.sum.total, c.sum.failed = c.sum.total-k, c.sum.failed-k
		n -= min(n, k)
	}
	return since
}

func (c *tallies) slotOf(slot int64) *tally {
	if slot == c.head {
		return &c.filling
	}
	return c.ring(slot)
}
