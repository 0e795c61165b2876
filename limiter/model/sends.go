package model

import "github.com/headrace/headrace/limiter"

const (
	// slotsKept bounds the memory of a law's sends, to 64 KB. A lane of ordinary traffic has a
	// slot for each send. A busier one has slots of several, and still knows to a hundredth of
	// a second what left when. Thirty seconds of five hundred calls a second are eight to a
	// slot.
	slotsKept = 1 << 11

	// sendsHorizon is the least time, in seconds, for which sends are needed: the longest
	// stretch between two refusals from which an estimate is made.
	sendsHorizon = 120.0

	// slotsFirst is the number of slots with room at first: few, as most lanes of ten thousand
	// make few calls. The room doubles when it is full.
	slotsFirst = 4
)

// A slot holds calls that left one after the other; mostly one.
type slot struct {
	from, to      float64 // when the first and the last of them left
	sent, refused float32 // requests
	input, output float32 // tokens
}

// share returns the part of the slot in (from, to], with its calls taken as evenly spread.
func (e *slot) share(from, to float64) float64 {
	width := e.to - e.from
	if width <= 0 {
		return 1
	}
	return max(0, min(to, e.to)-max(from, e.from)) / width
}

// drew returns what the provider drew for the slot in dimension k. Refused calls draw nothing. The
// slot does not know which of its calls they were, so it takes them to have as many tokens as the
// others.
func (e *slot) drew(k int) float64 {
	var tokens float32
	switch k {
	case dimRequests:
		return float64(e.sent - e.refused)
	case dimInput:
		tokens = e.input
	case dimOutput:
		tokens = e.output
	default:
		tokens = e.input + e.output
	}
	if e.refused == 0 || e.sent == 0 {
		return float64(tokens)
	}
	return float64(tokens) * float64(1-e.refused/e.sent)
}

// add notes a call in the slot, not before those that are there.
func (e *slot) add(at float64, c limiter.Cost) {
	e.to = at
	e.sent += float32(c.Requests)
	e.input += float32(c.Input)
	e.output += float32(c.Output)
}

func (e *slot) join(o *slot) {
	e.to = o.to
	e.sent += o.sent
	e.refused += o.refused
	e.input += o.input
	e.output += o.output
}

// sends remembers what left, when, and how much of it was refused.
//
// Invariant: slots first to count−1 are kept, slot i at i%slotsKept. No slot is forgotten before
// the ring has room for slotsKept of them. Slots do not overlap, and lie in the order of time.
//
// The facts that a single call's fate needs are not here, as slots are merged. They travel with
// the call, in its [limiter.Ticket].
type sends struct {
	first, count uint64
	grain        float64 // seconds that a slot may span
	ring         []slot
}

// add records a call that leaves.
func (s *sends) add(at float64, c limiter.Cost) {
	if s.count > s.first {
		if last := s.get(s.count - 1); at-last.from <= s.grain {
			last.add(at, c)
			return
		}
	}
	if s.count-s.first == slotsKept {
		s.makeRoom(at)
	}
	if n := len(s.ring); n < slotsKept && int(s.count) == n {
		wider := make([]slot, max(slotsFirst, 2*n))
		copy(wider, s.ring)
		s.ring = wider
	}
	e := s.get(s.count)
	e.from, e.sent, e.refused, e.input, e.output = at, 0, 0, 0, 0
	e.add(at, c)
	s.count++
}

// makeRoom forgets the oldest slot. If that is too young to go, it merges slots instead.
func (s *sends) makeRoom(now float64) {
	age := now - s.get(s.first).from
	if age >= sendsHorizon {
		s.first++
		if age > 4*sendsHorizon {
			s.grain /= 2 // the traffic has thinned
		}
		return
	}
	s.grain = max(2*s.grain, 2*age/slotsKept)
	kept := s.first
	for i := s.first + 1; i < s.count; i++ {
		if e := s.get(i); e.to-s.get(kept).from <= s.grain {
			s.get(kept).join(e)
		} else {
			kept++
			*s.get(kept) = *e
		}
	}
	s.count = kept + 1
	if s.count-s.first == slotsKept { // they lie too unevenly to be merged
		s.first++
	}
}

func (s *sends) get(i uint64) *slot { return &s.ring[i%slotsKept] }

// after returns the first slot that ends after t.
func (s *sends) after(t float64) uint64 {
	low, high := s.first, s.count
	for low < high {
		if mid := low + (high-low)/2; s.get(mid).to > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// at returns the slot in which a call left; nil if that is forgotten.
func (s *sends) at(t float64) *slot {
	i := s.after(t)
	if i > s.first && s.get(i-1).to == t {
		i--
	}
	if i == s.count || s.get(i).from > t {
		return nil
	}
	return s.get(i)
}

// bookRefusal notes that a call was refused: the provider did not charge it.
func (s *sends) bookRefusal(at float64, requests float64) {
	if e := s.at(at); e != nil {
		e.refused = min(e.sent, e.refused+float32(requests))
	}
}

// takeBack notes that a call never left.
func (s *sends) takeBack(at float64, c limiter.Cost) {
	if e := s.at(at); e != nil {
		e.sent = max(0, e.sent-float32(c.Requests))
		e.input = max(0, e.input-float32(c.Input))
		e.output = max(0, e.output-float32(c.Output))
	}
}

// accepted returns the requests that were sent in (from, to] and not refused.
func (s *sends) accepted(from, to float64) (n float64) {
	for i := s.after(from); i < s.count; i++ {
		e := s.get(i)
		if e.from > to {
			break
		}
		n += e.drew(dimRequests) * e.share(from, to)
	}
	return n
}

// sent returns the requests that were sent in (from, to].
func (s *sends) sent(from, to float64) (n float64) {
	for i := s.after(from); i < s.count; i++ {
		e := s.get(i)
		if e.from > to {
			break
		}
		n += float64(e.sent) * e.share(from, to)
	}
	return n
}

// together returns the number of calls remembered with the one that left at t, as if they had
// left at one moment. The server may have taken that call before any of them. So the level that
// it found may be higher by as much than the level that a replay leaves.
func (s *sends) together(t float64) float64 {
	if e := s.at(t); e != nil {
		return max(0, float64(e.sent)-1)
	}
	return 0
}

// slotsSince returns the number of slots that end after t.
func (s *sends) slotsSince(t float64) uint64 { return s.count - s.after(t) }

// replay returns the level at to, from a level at from, with our own sends of dimension k between
// them. The capacity applies between the sends: what overflows before a send is lost to it.
func (s *sends) replay(k int, level, refill, capacity, from, to float64) float64 {
	t := from
	for i := s.after(from); i < s.count; i++ {
		e := s.get(i)
		if e.from > to {
			break
		}
		end := min(e.to, to)
		level = min(capacity, level+refill*(end-t)) - e.drew(k)*e.share(from, to)
		t = end
	}
	return min(capacity, level+refill*(to-t))
}

// latest returns the latest slot, as if nothing of it had been refused. If nothing has left, it
// returns the slot of one bare call.
func (s *sends) latest() slot {
	if s.count == s.first {
		return slot{sent: 1}
	}
	e := *s.get(s.count - 1)
	e.refused = 0
	return e
}
