package measure

import "time"

// MaxSlots bounds the ring of tallies: a minute in seconds is as fine as anyone asks.
const MaxSlots = 60

// fewSlots is the number of slots of this package's tallies, unless a user asks for more. Their
// ring lies in the value itself. Otherwise each of thousands of lanes would have several more
// pieces of memory.
const fewSlots = 12

// A Tally counts the events in one slot of time.
type Tally struct{ Total, Failed uint32 }

// Rate returns the share that failed; 0 if nothing happened.
func (t Tally) Rate() float64 {
	if t.Total == 0 {
		return 0
	}
	return float64(t.Failed) / float64(t.Total)
}

// Tallies count the events of the most recent span of time, in slots.
//
//	slot:   0     1     2     3     4     5      width each, from Origin on
//	     │·····│·····│·····│·····│·····│··
//	                 └─ counted at 5 if there are 4 ─┘
//
// The youngest slot is filling, so the count reaches back between span−width and span. Slots
// are numbered from the first event; ring i%Slots is slot i, for the last Slots numbers
// before Head, filling is the head, and Sum is the total.
//
// The fields that an event touches come first, and fill one line of a processor's cache.
//
// The zero value has not begun. A copy is independent: the array at many is never written to,
// but replaced, once in a slot or when something is taken back.
type Tallies struct {
	Origin  time.Time
	width   time.Duration
	Slots   int64 // 0: not begun
	Head    int64
	Sum     Tally
	filling Tally

	many *[MaxSlots]Tally // instead of few, where the slots are more; shared with copies
	few  [fewSlots]Tally
}

// Part parts a copy from what it was copied from.
func (c *Tallies) Part() {
	if c.many != nil {
		own := *c.many
		c.many = &own
	}
}

// Begun reports whether the tallies have begun.
func (c *Tallies) Begun() bool { return c.Slots > 0 }

// Begin starts empty tallies at now.
func (c *Tallies) Begin(now time.Time, span time.Duration, slots int) {
	*c = Tallies{Origin: now, Slots: int64(slots), width: max(1, span/time.Duration(slots))}
	if slots > fewSlots {
		c.many = new([MaxSlots]Tally)
	}
}

func (c *Tallies) ring(slot int64) *Tally {
	i := slot % c.Slots
	if c.many != nil {
		return &c.many[i]
	}
	return &c.few[i]
}

// slotAt returns the slot that now falls in; the head's if the clock went back.
func (c *Tallies) slotAt(now time.Time) int64 {
	return c.SlotSince(now.Sub(c.Origin))
}

// SlotSince is slotAt so long after the origin.
func (c *Tallies) SlotSince(since time.Duration) int64 {
	if since < c.width*time.Duration(c.Head+1) { // nearly always, and saves the division
		return c.Head
	}
	return int64(since / c.width)
}

// Add counts an event that long after the origin.
func (c *Tallies) Add(since time.Duration, failed bool) {
	if slot := c.SlotSince(since); slot != c.Head {
		c.forward(slot)
	}
	c.filling.Total++
	c.Sum.Total++
	if failed {
		c.filling.Failed++
		c.Sum.Failed++
	}
}

// forward makes a later slot the head, and subtracts the slots that are now too old.
func (c *Tallies) forward(slot int64) {
	c.own()
	*c.ring(c.Head), c.filling = c.filling, Tally{}
	for i := c.Head + 1; i <= min(slot, c.Head+c.Slots); i++ {
		old := c.ring(i) // slot i takes the place of slot i-Slots
		c.Sum.Total -= old.Total
		c.Sum.Failed -= old.Failed
		*old = Tally{}
	}
	c.Head = slot
}

// own copies the array that copies share, before it is written to.
func (c *Tallies) own() {
	if c.many != nil {
		many := *c.many
		c.many = &many
	}
}

// CountAt returns the count that there would be with slot filling. The slot must be at or after the
// head.
func (c *Tallies) CountAt(slot int64) Tally {
	sum := c.Sum
	for i := max(0, c.Head-c.Slots+1); i <= min(c.Head, slot-c.Slots); i++ {
		old := c.at(i)
		sum.Total -= old.Total
		sum.Failed -= old.Failed
	}
	return sum
}

// at returns the count of a slot that is not forgotten.
func (c *Tallies) at(slot int64) Tally {
	return *c.slotOf(slot)
}

// Count returns the count at now; zero if the tallies never began.
func (c *Tallies) Count(now time.Time) Tally {
	if !c.Begun() {
		return Tally{}
	}
	return c.CountAt(c.slotAt(now))
}

// TakeBack drops the n youngest events, which were all failures, and the failures of the
// youngest slots in which these are more than half. It returns when the oldest of such slots
// began, since the origin; the end of the youngest if there is none.
func (c *Tallies) TakeBack(n uint32) (since time.Duration) {
	c.own()
	since = c.width * time.Duration(c.Head+1)
	for slot := c.Head; slot >= max(0, c.Head-c.Slots+1); slot-- {
		tally := c.slotOf(slot)
		dropped := min(n, tally.Failed)
		if 2*tally.Failed > tally.Total {
			dropped, since = tally.Failed, c.width*time.Duration(slot)
		}
		if dropped == 0 {
			break
		}
		tally.Total, tally.Failed = tally.Total-dropped, tally.Failed-dropped
		c.Sum.Total, c.Sum.Failed = c.Sum.Total-dropped, c.Sum.Failed-dropped
		n -= min(n, dropped)
	}
	return since
}

func (c *Tallies) slotOf(slot int64) *Tally {
	if slot == c.Head {
		return &c.filling
	}
	return c.ring(slot)
}
