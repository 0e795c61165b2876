package model

import (
	"math/bits"

	"github.com/headrace/headrace/limiter"
)

// What became of calls, in the order in which they left: each lesson is taken once, when
// it is known, and whoever explains refusals takes it from here.

// braked is how many of the latest calls the brake looks at: three seconds at ten a
// second.
const braked = 30

// recentCalls is how many of the latest fates are remembered one by one.
const recentCalls = 64

// fate takes what became of a call, in the order in which calls left.
func (m *Law) fate(f *fate) {
	m.recent <<= 1
	if f.refused {
		m.row++
		return
	}
	m.recent |= 1
	m.row = 0
	m.lastPace = float64(f.ticket.Pace)
	m.letIn(f)
}

// letIn takes the lesson of a call that was let in.
func (m *Law) letIn(f *fate) {
	bin := paceBin(m.lastPace)
	m.chance.run++
	m.book(bin, crowdBin(int(f.ticket.Beside)))
	if m.drought != nil && f.at > m.drought.began {
		m.endDrought(f.at)
	}
	if c := m.crowd.cap; c != nil && c.guess == nil && f.ticket.AtCap {
		c.letIn(1/max(m.lastPace, 1e-3), float64(f.ticket.Beside))
	}
	if m.trial != nil {
		m.trial.count(f, bin)
		m.conclude(f.at)
	}
}

// alike are calls let in one after the other at one pace and in company of one size, and
// not booked yet: before anything was refused nobody asks the tables, and most lanes
// never are refused.
type alike struct{ pace, crowd, calls uint8 }

// book takes a call that was let in into the tables of pace and company.
func (m *Law) book(pace, crowd int) {
	if a := &m.alike; m.refusals == 0 && int(a.pace) == pace && int(a.crowd) == crowd && a.calls < tableMost {
		a.calls++
		return
	}
	m.bookAlike()
	m.alike = alike{uint8(pace), uint8(crowd), 1}
	if m.refusals > 0 {
		m.bookAlike()
	}
}

// bookAlike books what is not booked yet.
func (m *Law) bookAlike() {
	a := m.alike
	for range a.calls {
		m.chance.paces.book(int(a.pace), false)
		m.crowd.beside.book(int(a.crowd), false)
		m.crowd.paces.book(int(a.pace), false)
	}
	m.alike = alike{}
}

// ripen takes the fates that are known by now: of calls before number n, and of those
// that would have been refused by now.
func (m *Law) ripen(t float64, n uint64) {
	late := t - 2*m.delay
	var f fate
	for m.fates.pop(n, late, &f) {
		if !f.silent {
			m.fate(&f)
		}
	}
}

// share is how many of the latest calls were refused.
func (m *Law) share() float64 {
	return float64(recentCalls-bits.OnesCount64(m.recent)) / recentCalls
}

// brake is the fastest pace that what was let in of late allows: twice as fast, but for
// what is refused beyond chance. Under an exact cap it is company that is refused, and not the
// pace. While a cap is guessed, twice the pace at which it was leaves room to find out.
func (m *Law) brake() float64 {
	c, least := m.crowd.cap, 1.0
	switch {
	case m.refusals == 0 || m.drought != nil || c != nil && c.exact && c.guess == nil:
		return unlimited
	case c != nil && c.guess != nil:
		least = 2 * c.guess.pace
	}
	let := float64(bits.OnesCount64(m.recent&(1<<braked-1))) / braked
	return max(least, 2*let/(1-m.luckless)*m.lastPace)
}

// refusedOne takes a refused call's fate in its turn.
func (m *Law) refusedOne(s float64, n *limiter.News) {
	if !m.fates.open(n.Ticket.Number) {
		m.chance.paces.correct(paceBin(float64(n.Ticket.Pace)))
		m.crowd.correct(&n.Ticket)
		return
	}
	m.fates.mute(n.Ticket.Number)
	f := fate{at: s, ticket: n.Ticket, refused: true}
	m.fate(&f)
	m.crowd.book(&n.Ticket, true)
}
