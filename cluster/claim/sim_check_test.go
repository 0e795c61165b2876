package claim

import (
	"slices"
	"time"
)

// called notes a call, and fails if the same was called before without an excuse.
func (w *world) called(c *call) {
	w.tally.calls++
	w.log("%s calls %v item %d", c.desk.l.name, c.desk.chunk, c.item)
	key := itemKey{c.desk.chunk, c.item}
	for _, before := range w.calls[key] {
		if !before.broke {
			w.excuse(before, c)
		}
	}
	w.calls[key] = append(w.calls[key], c)
}

// excuse finds why an item is called a second time. Of the two claims the later one has taken the chunk
// over from the earlier one: it must not have been able to read the earlier one's answer, and the
// earlier one must have been dead to it, or its journal broken.
func (w *world) excuse(a, b *call) {
	w.tally.repeats++
	earlier, later := a, b
	if a.desk == b.desk {
		w.fail("item %d of %v is called twice by one claim", a.item, a.desk.chunk)
	}
	if later.desk.name.Compare(earlier.desk.name) < 0 {
		earlier, later = b, a
	}
	w.log("item %d of %v is called again, by %v after %v", a.item, a.desk.chunk, later.desk.name, earlier.desk.name)
	read, did := later.desk.readAt[earlier.desk.name]
	if !did {
		read = later.desk.listed
	}
	if earlier.saved && earlier.savedAt < read {
		w.fail("%v calls item %d of %v, which %v had saved", later.desk.name, a.item, a.desk.chunk, earlier.desk.name)
	}
	if !w.lost(earlier) && !(earlier.desk.broke && !earlier.saved) {
		w.fail("%v and %v both call item %d of %v", earlier.desk.name, later.desk.name, a.item, a.desk.chunk)
	}
}

// countOverlaps counts claims of a chunk that another worker has not ended.
func (w *world) countOverlaps(d *desk) {
	for _, l := range w.slots {
		for _, o := range l.desks {
			if l != d.l && !l.dead && !o.over && o.chunk == d.chunk && o.name.Turn > 0 {
				w.tally.overlaps++
				return
			}
		}
	}
}

// slack bounds the calls of a worker that does not know yet who has taken its chunk over. It counts from the
// time when the worker hears again, or when another has told it. The message may be lost if the bus goes in that
// moment, and the worker calls without the bus for that long. Then it looks.
const slack = permitLife

// question is a claim's question to a worker, with the time it waited; won: it then took the chunk over.
type question struct {
	by       *desk
	who      string
	from, to time.Duration
	won      bool
}

// lost reports whether a claim's chunk was taken over while its worker was dead, frozen or cut off, and
// it made the call before it could know better.
func (w *world) lost(c *call) bool {
	l := c.desk.l
	return slices.ContainsFunc(w.asks[c.desk.chunk], func(q *question) bool {
		if !q.won || q.who != l.name {
			return false
		}
		if l.dead && l.died <= q.to && !l.ended {
			return true
		}
		until, deaf := l.hearsAfter(q)
		return deaf && c.from <= max(q.to, until)+slack
	})
}

// hearsAfter returns when a worker that was deaf to a question hears again. A gap too short to hear
// anything in does not count.
func (l *life) hearsAfter(q *question) (until time.Duration, deaf bool) {
	for _, s := range l.deaf { // in the order in which they began
		if s.from <= q.to && q.from <= s.to || deaf && s.from <= until+thaw+way {
			until, deaf = max(until, s.to), true
		}
	}
	return until, deaf
}

// checkEnd looks whether the parts have each item once, in order.
func (w *world) checkEnd() {
	for n := range w.chunks {
		for round := range w.round + 1 {
			w.checkPart(Chunk{"j", n, round})
		}
	}
}

func (w *world) checkPart(c Chunk) {
	want := w.items(c)
	p := w.store.parts[c]
	if p == nil {
		if len(want) > 0 {
			w.fail("%v has no part", c)
		}
		return
	}
	var got []int
	for _, l := range p.lines {
		got = append(got, l.item)
	}
	if !slices.Equal(got, want) {
		w.fail("the part of %v has items %v, not %v", c, got, want)
	}
}
