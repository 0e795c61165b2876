package claim

import (
	"slices"
	"time"
)

// queue is a work queue that gives a message out again when it has heard nothing for AckWait. It
// remembers nothing that it must.
type queue struct {
	w        *world
	messages map[Chunk]*message
	wiped    int     // how often all was forgotten
	pulls    []*pull // of workers that wait for a chunk, in order
}

type message struct {
	chunk     Chunk
	pending   bool          // somebody has it
	first     time.Duration // when it was given to whom has it
	until     time.Duration // of pending: it is given out again then
	from      time.Duration // of not pending: it is not given out before
	delivered int
}

type pull struct {
	life  *life
	until time.Duration
}

// publish queues a chunk, unless it is there.
func (q *queue) publish(c Chunk) {
	if q.messages[c] == nil {
		q.w.log("queue %v", c)
		q.messages[c] = &message{chunk: c, from: q.w.now}
		q.match()
	}
}

// match gives chunks to those who wait for one.
func (q *queue) match() {
	w := q.w
	if !w.up {
		return
	}
	q.pulls = slices.DeleteFunc(q.pulls, func(p *pull) bool { return p.until < w.now || p.life.dead || !p.life.online })
	for len(q.pulls) > 0 {
		m := q.available()
		if m == nil {
			return
		}
		p := q.pulls[0]
		q.pulls = q.pulls[1:]
		q.give(m, p.life)
	}
}

// available gives any message that may be given out, and otherwise looks again when one may be.
func (q *queue) available() *message {
	var can []*message
	for n := range q.w.chunks { // in an order that does not depend on chance
		for round := range q.w.round + 1 {
			m := q.messages[Chunk{"j", n, round}]
			if m != nil && !m.pending && m.from <= q.w.now {
				can = append(can, m)
			}
		}
	}
	if len(can) == 0 {
		return nil
	}
	return can[q.w.rng.IntN(len(can))]
}

func (q *queue) give(m *message, l *life) {
	w := q.w
	m.delivered++
	m.pending, m.first = true, w.now
	q.extend(m)
	if w.has(doubles) && w.chance(w.twice) {
		w.tally.doubles++
		w.log("%v will be given out twice", m.chunk)
		m.pending = false
		q.later(m, w.upTo(pick(w.rng, 0, 100*time.Millisecond, 20*time.Second)))
	}
	redelivered := m.delivered > 1
	wiped := q.wiped
	l.hear(w.way(), func() { l.delivered(m.chunk, redelivered, wiped) })
}

// extend trusts the holder of the message for another AckWait.
func (q *queue) extend(m *message) {
	m.until = q.w.now + DefaultAckWait
	q.w.in(DefaultAckWait, func() {
		if m.pending && m.until <= q.w.now {
			q.w.log("%v lapses", m.chunk)
			m.pending, m.from = false, q.w.now
			q.match()
		}
	})
}

func (q *queue) later(m *message, d time.Duration) {
	m.from = q.w.now + d
	q.w.in(d, q.match)
}

// beat is heard only of what was given out since all was forgotten last.
func (q *queue) beat(c Chunk, wiped int) (heard bool) {
	if wiped != q.wiped {
		return false
	}
	if m := q.messages[c]; m != nil && m.pending {
		q.extend(m)
	}
	return true
}

// ack takes a message away, whichever delivery of it is meant.
func (q *queue) ack(c Chunk, canceled bool) {
	if q.w.store.parts[c] == nil && !canceled {
		q.w.fail("%v is acked, and has no part", c)
	}
	delete(q.messages, c)
}

func (q *queue) putBack(c Chunk, after time.Duration) {
	if m := q.messages[c]; m != nil && m.pending {
		m.pending = false
		q.later(m, after)
	}
}

// restart forgets: heartbeats, most often, or all.
func (q *queue) restart(wipe bool) {
	if wipe {
		q.w.tally.wipes++
		q.wiped++
		q.messages = make(map[Chunk]*message)
	}
	for _, m := range q.messages {
		if m.pending {
			m.pending, m.from = false, q.w.now
		}
	}
}
