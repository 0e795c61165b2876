package permit

import (
	"cmp"
	"slices"
	"time"
)

// A hand is the permits that may be used, the smallest first.
type hand struct {
	permits []inHand
	matched []bool // of match: which are spoken for
}

type inHand struct {
	Permit
	epoch, wave uint64
	until       time.Time // it is good before
	report      uint64    // that a call has left with it, which did not leave after all; 0: none has
}

// size orders permits: who covers a call is not smaller than it in any part, so the smallest
// that covers it is the first that does. Tokens are what differs from call to call.
func (c Cost) size() float64 { return c.Input + c.Output }

// covers reports whether a permit for c is one for d.
func (c Cost) covers(d Cost) bool {
	return max(1, c.Requests) >= max(1, d.Requests) && c.Input >= d.Input && c.Output >= d.Output
}

func (h *hand) add(p inHand) {
	i, _ := slices.BinarySearchFunc(h.permits, p, bySize)
	h.permits = slices.Insert(h.permits, i, p)
}

// bySize has the older of two of a size come first: it expires first.
func bySize(a, b inHand) int {
	if n := cmp.Compare(a.Cost.size(), b.Cost.size()); n != 0 {
		return n
	}
	if n := a.until.Compare(b.until); n != 0 {
		return n
	}
	return cmp.Compare(a.Number, b.Number)
}

// find is the smallest permit that covers a call and is good; −1 if there is none.
func (h *hand) find(now time.Time, c Cost) int {
	from, _ := slices.BinarySearchFunc(h.permits, c, func(p inHand, c Cost) int { return cmp.Compare(p.Cost.size(), c.size()) })
	for i := from; i < len(h.permits); i++ {
		if p := &h.permits[i]; now.Before(p.until) && p.Cost.covers(c) {
			return i
		}
	}
	return -1
}

func (h *hand) take(i int) inHand {
	p := h.permits[i]
	h.permits = slices.Delete(h.permits, i, i+1)
	return p
}

func (h *hand) dropOlder(epoch, wave uint64) []inHand {
	return h.drop(func(p *inHand) bool { return p.epoch < epoch || p.epoch == epoch && p.wave < wave })
}

// dropBack takes out the permits that were taken back, but for so many.
func (h *hand) dropBack(keep int) []inHand {
	return h.drop(func(p *inHand) bool {
		if p.report > 0 {
			keep--
		}
		return p.report > 0 && keep < 0
	})
}

func (h *hand) dropExpired(now time.Time) []inHand {
	return h.drop(func(p *inHand) bool { return !now.Before(p.until) })
}

// drop takes out those of which gone is true, oldest number first.
func (h *hand) drop(gone func(*inHand) bool) (out []inHand) {
	kept := h.permits[:0]
	for i := range h.permits { // it is asked at each decision, and seldom is one gone
		if p := &h.permits[i]; gone(p) {
			out = append(out, *p)
		} else {
			kept = append(kept, *p)
		}
	}
	h.permits = kept
	slices.SortFunc(out, func(a, b inHand) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// until is when the first permit in hand expires; zero: there is none.
func (h *hand) until() (first time.Time) {
	for i := range h.permits {
		if at := h.permits[i].until; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// match begins to say of calls, in the order in which they would leave, whether there is a
// permit for each. It answers how many there are.
func (h *hand) match() int {
	h.matched = append(h.matched[:0], make([]bool, len(h.permits))...)
	return len(h.permits)
}

// covers reports whether a permit that is not spoken for covers the next call, and has it
// spoken for.
func (h *hand) covers(c Cost) bool {
	from, _ := slices.BinarySearchFunc(h.permits, c, func(p inHand, c Cost) int { return cmp.Compare(p.Cost.size(), c.size()) })
	for i := from; i < len(h.permits); i++ {
		if !h.matched[i] && h.permits[i].Cost.covers(c) {
			h.matched[i] = true
			return true
		}
	}
	return false
}
