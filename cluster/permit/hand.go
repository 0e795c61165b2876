package permit

import (
	"cmp"
	"slices"
	"time"
)

// A hand holds the permits that may be used, the smallest first.
type hand struct {
	permits []inHand
	matched []bool // for match: the permits that are spoken for
}

type inHand struct {
	Permit
	epoch, wave uint64
	until       time.Time // the permit is good before this
	report      uint64    // number of an earlier report that a call left with it; 0: none
}

// size orders permits. A permit that covers a call is in no part smaller than it, so the first
// that covers it is the smallest. Calls differ from each other in their tokens.
func (c Cost) size() float64 { return c.Input + c.Output }

// covers reports whether a permit for c is one for d.
func (c Cost) covers(d Cost) bool {
	return max(1, c.Requests) >= max(1, d.Requests) && c.Input >= d.Input && c.Output >= d.Output
}

func (h *hand) add(p inHand) {
	i, _ := slices.BinarySearchFunc(h.permits, p, bySize)
	h.permits = slices.Insert(h.permits, i, p)
}

// bySize puts the older of two permits of a size first: it expires first.
func bySize(a, b inHand) int {
	if n := cmp.Compare(a.Cost.size(), b.Cost.size()); n != 0 {
		return n
	}
	if n := a.until.Compare(b.until); n != 0 {
		return n
	}
	return cmp.Compare(a.Number, b.Number)
}

// find returns the index of the smallest good permit that covers a call; −1 if there is none.
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

// dropBack takes out all but keep of the permits that came back.
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

// drop takes out the permits for which gone is true, oldest number first.
func (h *hand) drop(gone func(*inHand) bool) (out []inHand) {
	kept := h.permits[:0]
	for i := range h.permits { // this runs at each decision, and a permit is seldom gone
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

// until returns the time at which the first permit in hand expires; zero: there is none.
func (h *hand) until() (first time.Time) {
	for i := range h.permits {
		if at := h.permits[i].until; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// match starts to match calls with permits, in the order in which the calls would leave. It
// returns the number of permits.
func (h *hand) match() int {
	h.matched = append(h.matched[:0], make([]bool, len(h.permits))...)
	return len(h.permits)
}

// covers reports whether a permit that is not spoken for covers the next call, and reserves it.
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
