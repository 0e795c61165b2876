package model

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// sendsList is sends as anybody would write it: each call by itself, and all of them.
type sendsList []listed

type listed struct {
	at      float64
	cost    limiter.Cost
	refused bool
}

// drew returns the provider's draw of dimension k in (from, to].
func (l sendsList) drew(k int, from, to float64) (n float64) {
	for _, e := range l {
		if e.at > from && e.at <= to && !e.refused {
			n += perDimension(e.cost)[k]
		}
	}
	return n
}

// near returns the calls that left near a moment.
func (l sendsList) near(t, seconds float64) (n float64) {
	for _, e := range l {
		if math.Abs(e.at-t) <= seconds {
			n++
		}
	}
	return n
}

func (l sendsList) replay(k int, level, refill, capacity, from, to float64) float64 {
	t := from
	for _, e := range l {
		if e.at > from && e.at <= to {
			level, t = min(capacity, level+refill*(e.at-t)), e.at
			if !e.refused {
				level -= perDimension(e.cost)[k]
			}
		}
	}
	return min(capacity, level+refill*(to-t))
}

// both are a memory of sends and its twin.
type both struct {
	s    sends
	list sendsList
	now  float64
	rng  *rand.Rand
}

func newBoth(seed uint64) *both { return &both{rng: seeded(seed)} }

// send has a call leave so many seconds after the one before it; some calls of the last
// second turn out to have been refused, and some not to have left.
func (b *both) send(gap float64, c limiter.Cost) {
	b.now += gap
	b.s.add(b.now, c)
	b.list = append(b.list, listed{at: b.now, cost: c})
	i := len(b.list) - 1 - b.rng.IntN(50)
	if i < 0 || b.list[i].refused || b.now-b.list[i].at > 1 || b.rng.IntN(8) > 0 {
		return
	}
	e := &b.list[i]
	if b.rng.IntN(4) == 0 {
		b.s.takeBack(e.at, e.cost)
		e.cost = limiter.Cost{}
		return
	}
	b.s.bookRefusal(e.at, e.cost.Requests)
	e.refused = true
}

// span is a stretch of time of which everything is remembered.
func (b *both) span() (from, to float64) {
	begin := b.s.get(b.s.first).to
	from = begin + b.rng.Float64()*(b.now-begin)
	return from, from + b.rng.Float64()*(b.now-from)
}

// While each call has a slot of its own, what was let in between two moments is what a
// list of all calls says, call for call; also after calls were refused, taken back, or
// sent at one moment, and once the oldest are forgotten.
func TestSendsAgreeWithAList(t *testing.T) {
	b := newBoth(1)
	for range 2 * slotsKept {
		b.send(0.2*b.rng.ExpFloat64()*float64(b.rng.IntN(3)), one)
	}
	if b.s.grain > 0 || b.s.first == 0 {
		t.Fatalf("slots of %v s, the first is %d: not what this test is about", b.s.grain, b.s.first)
	}
	for range 3000 {
		from, to := b.span()
		want(t, "let in", b.s.accepted(from, to), b.list.drew(dimRequests, from, to))
		refill, capacity := 1+9*b.rng.Float64(), 1+30*b.rng.Float64()
		level := capacity * b.rng.Float64()
		near(t, "level", b.s.replay(dimRequests, level, refill, capacity, from, to),
			b.list.replay(dimRequests, level, refill, capacity, from, to), 1e-6)
	}
}

// Calls have their own costs, in tokens too; what was refused cost nothing.
func TestSendsKnowTokens(t *testing.T) {
	b := newBoth(2)
	for range slotsKept - 1 {
		b.send(0.01+b.rng.ExpFloat64(), limiter.Cost{Requests: 1, Input: float64(b.rng.IntN(2000)), Output: float64(b.rng.IntN(900))})
	}
	for range 1000 {
		from, to := b.span()
		for k := range dims {
			near(t, dimensionOf[k].String(), b.s.replay(k, 1e9, 0, 1e9, from, to),
				b.list.replay(k, 1e9, 0, 1e9, from, to), 1)
		}
	}
}

// A busy lane remembers as long as it must in as little room as it may, and what it says
// of a stretch of time is wrong by no more than the calls of the slots at its two ends.
func TestSendsOfABusyLane(t *testing.T) {
	b := newBoth(3)
	for b.now < 300 {
		b.send(b.rng.ExpFloat64()/500, one)
	}
	grain := b.s.grain
	if grain > 1 {
		t.Errorf("slots of %v s", grain)
	}
	if oldest := b.s.get(b.s.first).from; b.now-oldest < sendsHorizon {
		t.Errorf("only %v s are remembered", b.now-oldest)
	}
	bias, spans := 0.0, race.Fewer(300)
	for range spans {
		from, to := b.span()
		got, want := b.s.accepted(from, to), b.list.drew(dimRequests, from, to)
		bias += (got - want) / float64(spans)
		near(t, "let in", got, want, b.list.near(from, grain)+b.list.near(to, grain))
		near(t, "level", b.s.replay(dimRequests, 100, 450, 500, from, to),
			b.list.replay(dimRequests, 100, 450, 500, from, to), b.list.near(from, grain)+b.list.near(to, grain)+450*grain)
	}
	near(t, "calls too many in the mean", bias, 0, 5*math.Sqrt(300/float64(spans)))
}

// Merging loses nothing: all that is remembered is still there in sum.
func TestMergedSlotsKeepTotals(t *testing.T) {
	b := newBoth(4)
	for range 20 * slotsKept {
		b.send(b.rng.ExpFloat64()/800, one)
		if b.s.first > 0 {
			t.Fatal("a slot was forgotten within the horizon")
		}
	}
	want(t, "let in", b.s.accepted(-1, b.now), b.list.drew(dimRequests, -1, b.now))
	for i := b.s.first + 1; i < b.s.count; i++ {
		before, e := b.s.get(i-1), b.s.get(i)
		if e.from < before.to || e.to-e.from > b.s.grain+1e-9 {
			t.Fatalf("slot %d is %v to %v, after one to %v, of %v s at most", i, e.from, e.to, before.to, b.s.grain)
		}
	}
}

// Whatever the traffic, the room is bounded; and a lane that is used little takes little.
func TestSendsTakeBoundedRoom(t *testing.T) {
	for _, perSecond := range []float64{0.1, 5, 50, 500, 20_000} {
		b := newBoth(5)
		for range 150_000 {
			b.now += b.rng.ExpFloat64() / perSecond
			b.s.add(b.now, one)
		}
		room := uintptr(len(b.s.ring)) * unsafe.Sizeof(slot{})
		if most := uintptr(64 << 10); room > most {
			t.Errorf("%v calls a second: %d bytes, want at most %d", perSecond, room, most)
		}
	}
	var s sends
	s.add(1, one)
	if room := uintptr(len(s.ring)) * unsafe.Sizeof(slot{}); room > 128 {
		t.Errorf("one call takes %d bytes", room)
	}
}

// Once the traffic has thinned each call has a slot of its own again.
func TestSendsArePreciseAgain(t *testing.T) {
	b := newBoth(6)
	for b.now < 300 {
		b.send(b.rng.ExpFloat64()/500, one)
	}
	for range 4 * slotsKept {
		b.send(b.rng.ExpFloat64(), one)
	}
	b.list = b.list[len(b.list)-3*slotsKept:]
	for range 500 {
		from, to := b.span()
		near(t, "let in", b.s.accepted(from, to), b.list.drew(dimRequests, from, to), 1e-6)
	}
}
