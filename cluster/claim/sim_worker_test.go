package claim

import (
	"slices"
	"time"
)

// claimState holds the state of one claim in a worker's executor.
type claimState struct {
	l      *life
	id     ID
	chunk  Chunk
	name   Name
	works  bool
	listed time.Duration // when the list was made that the claim went by
	readAt map[Name]time.Duration
	done   map[int]bool
	queue  []int  // items to be read
	buffer []line // results on their way to the journal
	saving bool
	armed  bool
	closes bool
	broke  bool // the journal takes no more
	over   bool
}

// call is one call of an item.
type call struct {
	state   *claimState
	item    int
	from    time.Duration
	broke   bool // it brought no result
	saved   bool
	savedAt time.Duration
}

func (l *life) delivered(c Chunk, redelivered bool, wiped int) {
	l.number++
	id := l.number
	l.deliveries[id], l.first[id], l.wiped[id] = c, !redelivered, wiped
	l.w.log("%s gets %v", l.name, c)
	if l.m.claimOf(c) == nil {
		l.w.tally.claims++
		l.desks[id] = &claimState{l: l, id: id, chunk: c, readAt: make(map[Name]time.Duration)}
	}
	l.step(Delivered{id, c})
}

// do does what the machine says.
func (l *life) do(a Action) {
	w := l.w
	switch a.(type) {
	case CheckPart, List, Create, Ack, Clean:
		w.badLuck(l, 1)
	case Ask:
		w.badLuck(l, 4)
	case Join:
		w.badLuck(l, 2)
	}
	switch a := a.(type) {
	case Fetch:
		l.fetch()
	case Beat:
		l.beat(a)
	case Ack:
		l.ack(a)
	case Return:
		d := l.deliveries[a.Delivery]
		w.log("%s puts back %v for %v: %s", l.name, d, a.After, a.Why)
		l.say(func() { w.queue.putBack(d, a.After) })
	case Drop:
		w.log("%s drops %v: %s", l.name, l.deliveries[a.Delivery], a.Why)
	case CheckPart, List, Create, Remove, ReadJournals, Join, Clean:
		l.doStore(a)
	case Flush:
		l.desks[a.ID].flush()
	case Close:
		l.desks[a.ID].close()
	case Ask:
		l.askAll(a)
	case Tell:
		l.tell(a)
	case SayDone:
	case Go:
		l.start(l.desks[a.ID], a.Item)
	case Refuse:
		l.refused(l.desks[a.ID], a.Item)
	case Forget:
		l.desks[a.ID].over = true
	}
}

func (l *life) fetch() {
	ended := func(err error) { l.step(FetchEnded{"j", err}) }
	if !l.online {
		l.at(0, func() { ended(errBus) })
		return
	}
	number := l.number
	l.at(pullTime+requestTime, func() {
		if l.number == number && l.m.sources.anyFetching() {
			ended(nil)
		}
	})
	l.say(func() {
		l.w.queue.pulls = append(l.w.queue.pulls, &pull{l, l.w.Age() + pullTime})
		l.w.queue.match()
	})
}

func (l *life) beat(a Beat) {
	d := l.desks[a.ID]
	if c := l.m.claim(a.ID); l.w.mutant == needsNoBeat && c != nil && (c.state == asking || c.unheard) {
		l.step(BeatEnded{ID: a.ID})
		return
	}
	heard := false
	l.request(func() { heard = l.w.queue.beat(d.chunk, l.wiped[a.Delivery]) }, func(err error) {
		if err == nil && !heard {
			l.step(BeatEnded{a.ID, errBus, true})
			return
		}
		l.step(BeatEnded{ID: a.ID, Err: err})
	})
}

func (l *life) ack(a Ack) {
	c, canceled := l.desks[a.ID].chunk, l.m.claim(a.ID).exit == dropped
	l.request(func() { l.w.queue.ack(c, canceled) }, func(err error) { l.step(Acked{a.ID, err}) })
}

func (l *life) askAll(a Ask) {
	d := l.desks[a.ID]
	for _, who := range a.Who {
		if l.w.mutant == asksNobody {
			l.step(Answered{ID: a.ID, Who: who})
			continue
		}
		l.ask(d, who, func(holds, silent bool) { l.step(Answered{a.ID, who, holds, silent}) })
	}
}

func (l *life) tell(a Tell) {
	c := l.desks[a.ID].chunk
	for _, k := range l.w.asks[c] {
		if k.by == l.desks[a.ID] && k.to == forever {
			k.to, k.won = max(l.w.Age(), l.apart)+way, true // when it is heard, at the latest
		}
	}
	l.w.tally.takeovers++
	for _, who := range a.Who {
		l.w.log("%s tells %s that %v is its by %v", l.name, who, c, a.Name)
		if other := l.w.lives[who]; l.w.mutant != tellsNobody {
			l.say(func() { other.hear(l.w.way(), func() { other.step(ClaimedByOther{c, a.Name}) }) })
		}
	}
}

// feed reads an item, if the stream has room for it and the machine knows from where.
func (l *life) feed() bool {
	if len(l.stream)+l.busy >= 2*l.w.concurrency+2 {
		return false
	}
	id, ok := l.m.Next(func(ID) bool { return true })
	if !ok {
		return false
	}
	d := l.desks[id]
	if len(d.queue) == 0 {
		l.step(ReadOut{ID: id})
		return true
	}
	item := d.queue[0]
	d.queue = d.queue[1:]
	l.stream = append(l.stream, &work{d, item})
	l.step(Fed{id, item})
	return true
}

// begin asks for the next call, if there is a place for it and a permit.
func (l *life) begin() bool {
	if l.busy >= l.w.concurrency || len(l.stream) == 0 || !l.mayCall() {
		return false
	}
	x := l.stream[0]
	l.stream = l.stream[1:]
	if l.w.has(unruns) && l.w.chance(60) {
		l.w.log("%s does not run %v item %d", l.name, x.state.chunk, x.item)
		l.step(Unrun{x.state.id, x.item})
		return true
	}
	l.busy++
	l.step(Begun{x.state.id, x.item})
	return true
}

func (l *life) refused(d *claimState, item int) {
	l.busy--
	l.w.log("%s refuses %v item %d", l.name, d.chunk, item)
}

// start makes a call, at once or a moment later.
func (l *life) start(d *claimState, item int) {
	l.at(l.w.upTo(leaving), func() {
		c := &call{state: d, item: item, from: l.w.Age()}
		l.w.called(c)
		took := time.Millisecond + l.w.upTo(l.w.call)
		l.at(took, func() { d.answered(c) })
	})
}

// answered takes the end of a call.
func (d *claimState) answered(c *call) {
	w := d.l.w
	d.l.busy--
	if w.has(brokenCalls) && w.chance(10) {
		c.broke = true
		d.l.step(Missed{d.id, c.item})
		d.l.stream = append(d.l.stream, &work{d, c.item})
		return
	}
	d.l.step(Took{d.id, c.item})
	if d.over || d.broke {
		return
	}
	d.buffer = append(d.buffer, line{c.item, c, d.chunk.Round == 0 && w.chance(5)})
	if w.mutant == countsFirst {
		d.l.step(Saved{d.id, 1})
	}
	if !d.armed {
		d.armed = true
		d.l.at(w.flush, func() {
			d.armed = false
			d.flush()
		})
	}
}

// flush saves what waits, one batch at a time.
func (d *claimState) flush() {
	w, lines := d.l.w, d.buffer
	if d.saving || len(lines) == 0 {
		return
	}
	d.saving, d.buffer = true, nil
	took := time.Millisecond + w.upTo(100*time.Millisecond)
	at := w.upTo(took)
	breaks, all := w.has(storeFaults) && w.chance(40), w.chance(2)
	w.In(at, func() {
		if !breaks || all {
			w.store.appendTo(d.chunk, d.name, lines)
		}
		d.l.at(took-at, func() { d.flushed(len(lines), breaks) })
	})
}

// flushed takes the end of it: the lines are saved, or the journal is broken and nobody knows.
func (d *claimState) flushed(lines int, breaks bool) {
	d.saving = false
	switch {
	case breaks:
		d.l.w.log("%s cannot write the journal of %v", d.l.name, d.chunk)
		d.broke, d.buffer = true, nil
		d.l.step(JournalBroke{d.id, errStore})
	case d.l.w.mutant != countsFirst:
		d.l.step(Saved{d.id, lines})
	}
	switch {
	case d.closes:
		d.close()
	case len(d.buffer) > 0 && !d.armed:
		d.flush()
	}
}

func (d *claimState) close() {
	d.closes = true
	if d.l.w.mutant != countsFirst {
		d.flush()
		if d.saving {
			return
		}
	}
	d.l.step(Closed{d.id})
}

// doneIn are the items that have a line.
func doneIn(lines []line, done map[int]bool) {
	for _, l := range lines {
		done[l.item] = true
	}
}

// left are the items that have none.
func (d *claimState) left() []int {
	return slices.DeleteFunc(d.l.w.items(d.chunk), func(i int) bool { return d.done[i] })
}

// doStore does what the machine wants of the store.
func (l *life) doStore(a Action) {
	s := &l.w.store
	switch a := a.(type) {
	case CheckPart:
		l.checkPart(a.ID)
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

func (l *life) checkPart(id ID) {
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
			d.listed = l.w.Age()
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
		d.readAt[n] = l.w.Age()
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
func (l *life) part(d *claimState, lines []line, complete, gone bool) {
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
