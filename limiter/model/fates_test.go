package model

import (
	"slices"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// fatesPlay plays calls and news at random on fates, and checks each fate that comes out.
type fatesPlay struct {
	t      *testing.T
	f      fates
	now    float64
	sent   []float64 // by number, from 1
	silent map[uint64]bool
	known  []uint64
	late   float64
}

func (p *fatesPlay) add() {
	n := p.f.add(p.now, &limiter.Ticket{Pace: float32(len(p.sent)), Beside: uint16(len(p.sent)), AtCap: len(p.sent)%3 == 0})
	p.sent = append(p.sent, p.now)
	want(p.t, "number", n, uint64(len(p.sent)))
}

// take takes all fates that are known now that call n was refused.
func (p *fatesPlay) take(n uint64) {
	var f fate
	for p.f.pop(n, p.late, &f) {
		number := f.ticket.Number
		p.known = append(p.known, number)
		ticket := limiter.Ticket{Number: number, Pace: float32(number - 1), Beside: uint16(number - 1), AtCap: (number-1)%3 == 0}
		if f.at != p.sent[number-1] || f.ticket != ticket || f.silent != p.silent[number] {
			p.t.Fatalf("fate %d is %+v", number, f)
		}
		if number >= n && f.at >= p.late && len(p.sent)-int(number) < fatesMost {
			p.t.Fatalf("the fate of call %d of %v is known too early, at %v", number, f.at, p.late)
		}
	}
	if first := p.f.first; first > 0 && first <= uint64(len(p.sent)) && (first < n || p.sent[first-1] < p.late) {
		p.t.Fatalf("call %d is still open", first)
	}
}

// Each call's fate is known once, in the order in which calls left, as soon as a later
// call was refused or it is old enough, and not before.
func TestFatesAreKnownInOrderAndOnce(t *testing.T) {
	for seed := range uint64(50) {
		rng := seeded(seed)
		p := &fatesPlay{t: t, silent: map[uint64]bool{}}
		for range 2000 {
			p.now += rng.ExpFloat64()
			n := uint64(rng.IntN(len(p.sent) + 2))
			switch rng.IntN(4) {
			case 0:
				p.take(n)
			case 1:
				if p.f.open(n) {
					p.silent[n] = true
				}
				p.f.mute(n)
			case 2:
				p.late = max(p.late, p.now-float64(rng.IntN(30)))
				p.take(0)
			default:
				p.add()
			}
		}
		p.take(uint64(len(p.sent)) + 1)
		want(t, "fates known", len(p.known), len(p.sent))
		want(t, "in order", slices.IsSorted(p.known), true)
	}
}

// However long nobody hears of calls, no more than so many are awaited, and the oldest
// counts as let in.
func TestFatesAreBounded(t *testing.T) {
	p := &fatesPlay{t: t}
	for range 5 * fatesKept {
		p.now += 0.001
		p.add()
		p.take(0)
		if n := p.f.next - p.f.first; n > fatesMost || len(p.f.ring) > fatesKept {
			t.Fatalf("%d calls are awaited, in room for %d", n, len(p.f.ring))
		}
	}
	want(t, "fates known", len(p.known), len(p.sent)-fatesMost)
}

// Of calls that leave at one moment as many are awaited as there is room for, and the
// latest of them; of the others nothing becomes known, and nothing can be said.
func TestFatesOfOneMomentAreBounded(t *testing.T) {
	p := &fatesPlay{t: t}
	const more = 100
	for range fatesKept + more {
		p.add()
	}
	want(t, "room", len(p.f.ring), fatesKept)
	want(t, "the oldest forgotten is open", p.f.open(more), false)
	p.f.mute(more)
	p.take(uint64(len(p.sent)) + 1)
	want(t, "fates known", len(p.known), fatesKept)
	want(t, "the first of them", p.known[0], more+1)
}

// News of a call that nobody waits for, or that never was, changes nothing.
func TestFatesOfNobody(t *testing.T) {
	p := &fatesPlay{t: t, silent: map[uint64]bool{}}
	p.f.mute(0)
	p.f.mute(7)
	p.add()
	p.take(2)
	for _, n := range []uint64{0, 1, 2, 99} {
		want(t, "open", p.f.open(n), false)
		p.f.mute(n)
	}
	p.add()
	p.take(3)
	want(t, "fates known", len(p.known), 2)
}
