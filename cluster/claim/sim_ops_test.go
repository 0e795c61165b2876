package claim

import (
	"slices"
	"time"
)

// doStore does what the machine wants of the store.
func (l *life) doStore(a Action) {
	s := &l.w.store
	switch a := a.(type) {
	case LookPart:
		l.lookPart(a.ID)
	case List:
		l.list(a.ID)
	case Create:
		d, taken := l.desks[a.ID], false
		d.name = a.Name
		l.w.countOverlaps(d)
		s.do(l, func() error { taken = s.createJournal(d.chunk, a.Name); return nil },
			func(err error) { l.step(Created{a.ID, taken, err}) })
	case Remove:
		d := l.desks[a.ID]
		s.do(l, func() error { delete(s.journals[d.chunk], a.Name); return nil }, func(error) {})
	case ReadJournals:
		l.readJournals(a)
	case Join:
		l.join(a)
	case Clean:
		d := l.desks[a.ID]
		s.do(l, func() error { delete(s.journals, d.chunk); return nil }, func(error) { l.step(Cleaned(a)) })
	}
}

func (l *life) lookPart(id ID) {
	s, d, there := &l.w.store, l.desks[id], false
	blind := l.w.mutant == checksNotAgain && l.m.claim(id).state == checking
	s.do(l, func() error { there = s.parts[d.chunk] != nil && !blind; return nil },
		func(err error) { l.step(PartLooked{id, there, err}) })
}

func (l *life) list(id ID) {
	s, d := &l.w.store, l.desks[id]
	var names []Name
	blind := l.blind(id)
	s.do(l, func() error {
		if !d.works {
			d.listed = l.w.now
		}
		names = s.names(d.chunk)
		return nil
	}, func(err error) {
		if c := l.m.claim(id); blind && c != nil {
			names = l.known(c)
		}
		l.step(Listed{id, names, err})
	})
}

// known are the journals that a claim knows of without a list.
func (l *life) known(c *claim) (names []Name) {
	if l.w.mutant != trustsQueue {
		names = slices.DeleteFunc(slices.Clone(c.names), func(n Name) bool { return n == c.name })
	}
	if c.named() {
		names = append(names, c.name)
	}
	return names
}

// blind reports whether a mutant does not see what a list shows.
func (l *life) blind(id ID) bool {
	c := l.m.claim(id)
	switch l.w.mutant {
	case trustsQueue:
		return l.first[c.delivery] && c.state < working
	case settlesBlindly:
		return c.state == settling
	case looksNever:
		return c.inspecting
	case looksNotAfter:
		return c.inspecting && l.m.now.Sub(c.sure) < l.m.cfg.sureFor()
	}
	return false
}

// readJournals reads each journal at an instant of its own.
func (l *life) readJournals(a ReadJournals) {
	s, d := &l.w.store, l.desks[a.ID]
	d.done = make(map[int]bool)
	gone := false
	l.each(a.Names, func(n Name) {
		d.readAt[n] = l.w.now
		j := s.journals[d.chunk][n]
		switch {
		case l.w.mutant == ignoresJournals:
		case j == nil:
			gone = true
		default:
			doneIn(j.lines, d.done)
		}
	}, func(err error) {
		d.queue = d.left()
		d.works = err == nil && !gone
		l.step(JournalsRead{a.ID, gone, err})
	})
}

// each does something for each of some names, one after the other.
func (l *life) each(names []Name, visit func(Name), answer func(error)) {
	if len(names) == 0 {
		l.at(time.Millisecond, func() { answer(nil) })
		return
	}
	l.w.store.do(l, func() error { visit(names[0]); return nil }, func(err error) {
		if err != nil {
			answer(err)
			return
		}
		l.each(names[1:], visit, answer)
	})
}

func (l *life) join(a Join) {
	s, d := &l.w.store, l.desks[a.ID]
	if l.w.mutant == acksFirst {
		l.say(func() { l.w.queue.ack(d.chunk, false) })
	}
	var found [][]line
	gone := false
	l.each(a.Names, func(n Name) {
		if j := s.journals[d.chunk][n]; j != nil {
			found = append(found, j.lines)
			return
		}
		gone = true
	}, func(err error) {
		if err != nil {
			l.step(Joined{ID: a.ID, Err: err})
			return
		}
		lines, complete := s.join(d.chunk, found)
		if l.w.mutant == deletesEarly {
			s.do(l, func() error { delete(s.journals, d.chunk); return nil }, func(error) { l.part(d, lines, complete, gone) })
			return
		}
		l.part(d, lines, complete, gone)
	})
}

// part makes the part of a chunk, if it is complete; else it may be there.
func (l *life) part(d *desk, lines []line, complete, gone bool) {
	s := &l.w.store
	outcome := Incomplete
	l.w.badLuck(l, 4)
	s.do(l, func() error {
		switch {
		case complete:
			outcome = s.createPart(d.chunk, lines)
		case s.parts[d.chunk] != nil:
			outcome = Taken
		case !gone:
			l.w.fail("%s joins %v, and an item has no line", l.name, d.chunk)
		}
		return nil
	}, func(err error) { l.step(Joined{d.id, outcome, err}) })
}
