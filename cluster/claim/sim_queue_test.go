package claim

import (
	"errors"
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
		q.messages[c] = &message{chunk: c, from: q.w.Age()}
		q.match()
	}
}

// match gives chunks to those who wait for one.
func (q *queue) match() {
	w := q.w
	if !w.up {
		return
	}
	q.pulls = slices.DeleteFunc(q.pulls, func(p *pull) bool { return p.until < w.Age() || p.life.dead || !p.life.online })
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
			if m != nil && !m.pending && m.from <= q.w.Age() {
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
	m.pending, m.first = true, w.Age()
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
	m.until = q.w.Age() + DefaultAckWait
	q.w.In(DefaultAckWait, func() {
		if m.pending && m.until <= q.w.Age() {
			q.w.log("%v lapses", m.chunk)
			m.pending, m.from = false, q.w.Age()
			q.match()
		}
	})
}

func (q *queue) later(m *message, d time.Duration) {
	m.from = q.w.Age() + d
	q.w.In(d, q.match)
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
			m.pending, m.from = false, q.w.Age()
		}
	}
}

// store holds the parts and journals, which nobody forgets.
type store struct {
	w        *world
	parts    map[Chunk]*part
	journals map[Chunk]map[Name]*journal
}

type line struct {
	item   int
	call   *call
	failed bool
}

type part struct{ lines []line }

type journal struct{ lines []line }

var errStore = errors.New("the store is away")

// do lets a request happen between now and its answer. It happens whatever becomes of who asked.
func (s *store) do(l *life, effect func() error, answer func(error)) {
	w := s.w
	took := time.Millisecond + w.upTo(60*time.Millisecond)
	if w.has(slowStore) && w.chance(12) {
		took += w.upTo(5 * time.Second)
	}
	at := w.upTo(took)
	undone, unheard := w.has(storeFaults) && w.chance(100), w.has(storeFaults) && w.chance(100)
	w.In(at, func() {
		err := errStore
		if !undone {
			err = effect()
		}
		if unheard {
			err = errStore
		}
		l.at(took-at, func() { answer(err) })
	})
}

// names lists the journals of a chunk.
func (s *store) names(c Chunk) (names []Name) {
	for n := range s.journals[c] {
		names = append(names, n)
	}
	slices.SortFunc(names, Name.Compare)
	s.w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func (s *store) createJournal(c Chunk, n Name) (taken bool) {
	if s.journals[c] == nil {
		s.journals[c] = make(map[Name]*journal)
	}
	if s.journals[c][n] != nil {
		return true
	}
	s.journals[c][n] = &journal{}
	return false
}

// appendTo saves lines. Of a journal that was deleted nobody sees them: a file has no name any more,
// and pieces without the first are no journal.
func (s *store) appendTo(c Chunk, n Name, lines []line) {
	for _, l := range lines {
		l.call.saved, l.call.savedAt = true, s.w.Age()
	}
	if j := s.journals[c][n]; j != nil {
		j.lines = append(j.lines, lines...)
	}
}

// createPart makes a part, unless there is one.
func (s *store) createPart(c Chunk, lines []line) Outcome {
	if s.parts[c] != nil {
		if s.w.mutant == overwrites {
			s.parts[c] = &part{lines}
			s.w.fail("the part of %v was written over", c)
		}
		return Taken
	}
	s.w.log("part of %v: %d lines", c, len(lines))
	s.parts[c] = &part{lines}
	return Made
}

// joined are the lines of a part: of each item the first there is, in order; complete tells whether
// each item has one.
func (s *store) join(c Chunk, found [][]line) (lines []line, complete bool) {
	complete = true
	for _, item := range s.w.items(c) {
		i := slices.IndexFunc(found, func(ls []line) bool { return slices.ContainsFunc(ls, func(l line) bool { return l.item == item }) })
		if i < 0 {
			complete = false
			continue
		}
		at := slices.IndexFunc(found[i], func(l line) bool { return l.item == item })
		lines = append(lines, found[i][at])
	}
	return lines, complete
}
