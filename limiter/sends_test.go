package limiter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What was drawn between two moments agrees with adding up a list, also where the
// oldest sends have been forgotten.
func TestSendsAgreeWithAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var (
		s    sends
		list []struct{ at, requests float64 }
	)
	at := 0.0
	for range sendsKept + 500 {
		at += rng.Float64() * float64(rng.IntN(2)) // some at the same moment
		cost := Cost{Requests: float64(rng.IntN(100))}
		s.add(at, cost)
		list = append(list, struct{ at, requests float64 }{at, cost.Requests})
	}
	kept := list[500:]
	for range 2000 {
		from := kept[0].at + rng.Float64()*(at-kept[0].at) // later than what was forgotten
		to := from + rng.Float64()*(at-from)
		want := 0.0
		for _, e := range kept {
			if e.at > from && e.at <= to {
				want += e.requests
			}
		}
		if got := s.drawn(from, to); math.Abs(got-want) > 1e-6 {
			t.Fatalf("(%v, %v]: %v, want %v", from, to, got, want)
		}
	}
}

// Each send that is remembered says what was said of it, also after the ring has gone
// round: what was refused, and how many requests those were that were not one.
func TestSendsRememberEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, odd := range []uint64{0, 1, 100, sendsKept + 77, 3 * sendsKept} { // from here on not all are one request
		var (
			s       sends
			costs   []Cost
			refused = map[uint64]bool{}
			sum     float64
		)
		for n := range uint64(2*sendsKept + 6) {
			c := Cost{Requests: 1, Input: rng.Float64(), Output: rng.Float64()}
			if n == odd || n > odd && rng.IntN(10) == 0 {
				c.Requests = 2.5
			}
			if got := s.add(float64(n), c); got != n {
				t.Fatalf("send %d is called %d", n, got)
			}
			costs = append(costs, c)
			if back := uint64(rng.IntN(200)); rng.IntN(9) == 0 && n > sendsKept/2 && back <= n {
				s.refuse(n - back)
				refused[n-back] = true
			}
		}
		for n := s.oldest(); n < s.count; n++ {
			sum += costs[n].Requests
			if s.cost(n) != costs[n] || s.at(n) != float64(n) || s.wasRefused(n) != refused[n] {
				t.Fatalf("odd from %d: send %d is %+v at %v, refused: %v", odd, n, s.cost(n), s.at(n), s.wasRefused(n))
			}
			if got := s.drawn(float64(s.oldest())-1, float64(n)); got != sum {
				t.Fatalf("odd from %d: %v were drawn until send %d, want %v", odd, got, n, sum)
			}
		}
	}
}

// A level that is replayed through our own sends is what a bucket would have had
// that saw them: capped between them, and not charged for those it refused.
func TestReplayAgreesWithABucket(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		var s sends
		refill, capacity := 1+rng.Float64()*20, 5+rng.Float64()*50
		level, at := capacity*rng.Float64(), 0.0
		want := level
		for range 100 {
			gap := rng.ExpFloat64() / refill
			at += gap
			want = min(capacity, want+refill*gap)
			n := s.add(at, Cost{Requests: 1})
			if rng.IntN(5) == 0 {
				s.refuse(n)
			} else {
				want--
			}
		}
		end := at + rng.Float64()
		want = min(capacity, want+refill*(end-at))
		if got := s.replay(dimRequests, level, refill, capacity, 0, end); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// Headers show the level exactly, at the moment when their call was sent: what
// left since is taken off, and a neighbour's draw is found in what is missing.
func TestHeadersAndNeighbours(t *testing.T) {
	var (
		s sends
		g gauge
	)
	see := func(at, left float64) {
		g.see(dimRequests, Sighting{Limit: 600, Remaining: left}, &s, at, at)
	}
	see(1, 300)
	if got := g.level; math.Abs(got-300.5) > 1e-9 || g.refill != 10 || g.capacity != 600 {
		t.Fatalf("%+v", g)
	}
	// Four calls a second of ours, and four of somebody else's: two come in.
	left := 300.0
	for sec := 2.0; sec < 60; sec++ {
		for range 4 {
			s.add(sec-0.5, Cost{Requests: 1})
		}
		left += 2
		see(sec, left)
	}
	if g.others < 3.5 || g.others > 4.5 {
		t.Errorf("the neighbour is taken to draw %v a second, and draws 4", g.others)
	}
	g.see(dimRequests, Sighting{Limit: 600, Remaining: 1}, &s, 2, 70)
	if g.level < 300 {
		t.Errorf("old headers were believed: %v left", g.level)
	}
}

// With many calls in flight one answer of many is looked at, so that an answer costs
// what replayShare sends cost; with few in flight, each is.
func TestAnswersPayForReplays(t *testing.T) {
	for _, c := range []struct{ inFlight, answers, most int }{{1, 100, 100}, {replayShare, 100, 100}, {4096, 6400, 100}} {
		g := gauge{shown: &shown{}}
		looked := 0
		for range c.answers {
			if g.due(uint64(c.inFlight)) {
				looked++
			}
		}
		if looked != c.most {
			t.Errorf("%d in flight: %d of %d answers were looked at, want %d", c.inFlight, looked, c.answers, c.most)
		}
	}
}

// A limit that has changed is believed at once, however many calls are in flight and
// however lately one was looked at.
func TestNewLimitIsSeenAmongThousands(t *testing.T) {
	var (
		s sends
		g gauge
	)
	for i := range 4096 {
		s.add(1+float64(i)/4096, Cost{Requests: 1})
	}
	g.see(dimRequests, Sighting{Limit: 60_000, Remaining: 50_000}, &s, 1.1, 3)
	if g.see(dimRequests, Sighting{Limit: 60_000, Remaining: 49_999}, &s, 1.2, 3); g.seenAt != 1.1 {
		t.Fatal("each answer is looked at")
	}
	if !g.see(dimRequests, Sighting{Limit: 30_000, Remaining: 20_000}, &s, 1.3, 3) || g.refill != 500 {
		t.Errorf("a limit of 30,000 a minute was told, and %v a second is believed", g.refill)
	}
}
