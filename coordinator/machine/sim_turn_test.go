package machine

import "slices"

// This file is about turns: no pool starves in the line of a lane. While its run has room, the calls
// that other pools have there before its next one are bounded, whatever else happens to the pool.

// bookTurns counts, for pools that sleep in the lines of lanes, the calls of other pools there since
// the pool itself had one, on any lane.
type bookTurns struct {
	passed map[*pool]*bookTurn
	moved  map[string]bool // lanes that have changed since the latest look: their pools queue anew
}

// A bookTurn is, by lane of a pool, whether the pool sleeps there, and how many calls have passed it by.
type bookTurn struct {
	sleeps [8]bool
	passed [8]int
}

// note notes that a lane has changed.
func (t *bookTurns) note(lane string) {
	if t.moved == nil {
		t.moved = map[string]bool{}
	}
	t.moved[lane] = true
}

// mostPassed bounds these calls. Runs take turns by their priorities, and the pools of a run take
// turns in its turns. Three times as many leave room for a pool that stands last, has its wait for the next tier
// end, and stands last again.
func (b *book) mostPassed(p *pool, l *lane) int {
	priorities, own := 0, 0
	counted := map[*run]bool{}
	for _, q := range l.pools {
		if q.run == p.run {
			own++
		}
		if !counted[q.run] {
			counted[q.run] = true
			priorities += q.run.cfg.Priority
		}
	}
	return 3*priorities*(1+own/p.run.cfg.Priority) + 10
}

// noneStarves: after each decision.
func (b *book) noneStarves(grants []Grant) {
	t := &b.turns
	if t.passed == nil {
		t.passed = map[*pool]*bookTurn{}
	}
	for p := range t.passed {
		// A pool that sleeps no longer has been asked in this decision, and waits for money or a place.
		if p.counted == 0 || p.run.paused || b.w.m.runs[p.run.id] != p.run || slices.ContainsFunc(p.lanes, func(l *lane) bool { return t.moved[l.name] || l.remote() }) {
			delete(t.passed, p)
		}
	}
	clear(t.moved)
	for _, g := range grants {
		if g.Verdict != Call {
			continue
		}
		delete(t.passed, g.Item.pool)
		l := b.w.m.lanes[g.Lane]
		for p, on := range t.passed {
			i := slices.Index(p.lanes, l)
			if i < 0 || !on.sleeps[i] || p.seats[i].link.of == nil { // it was asked in this decision, and may not use the lane
				continue
			}
			if on.passed[i]++; on.passed[i] > b.mostPassed(p, l) {
				b.w.failf("pool %s of run %d starves: others had %d calls on lane %s, and it had none on any", p.name, p.run.id, on.passed[i], g.Lane)
			}
		}
	}
	for _, r := range b.w.m.runs {
		for _, p := range r.opened {
			b.noteTurn(p)
		}
	}
}

// noteTurn notes in which lines a pool sleeps while its run has room.
func (b *book) noteTurn(p *pool) {
	m := b.w.m
	if p.counted == 0 || !p.run.hasRoom() || m.full() || p.run.paused {
		delete(b.turns.passed, p)
		return
	}
	on := b.turns.passed[p]
	if on == nil {
		on = &bookTurn{}
		b.turns.passed[p] = on
	}
	for i := range p.lanes {
		if on.sleeps[i] = p.seats[i].link.of != nil; !on.sleeps[i] {
			on.passed[i] = 0
		}
	}
}
