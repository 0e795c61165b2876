package machine

import "math/rand/v2"

// This file is about looks: to recount a whole machine takes longer than what it does, so most worlds do that now and
// then. What is miscounted stays so, and is found by a later look. A break that the next decision mends is
// found by the worlds that look always.
//
//	each fact, grant, transition ─▶ the book's own laws, always
//	each decision ────────────────▶ is all asleep that must wait, and does something wake it? always
//	a step, or a decision ────────▶ recount the whole machine, at a look
//
// A world that fails is repeated with a look after each step.

// looks says after which steps and decisions of a world the whole machine is checked.
type looks struct {
	rng  *rand.Rand // nil: after each
	gap  int        // on average
	left int        // until the next look
}

const (
	alwaysLooks = 16 // one world in so many looks always,
	shortestGap = 8  // and each other one now and then: on average after 8 steps in some,
	longestGap  = 40 // and after 40 in others
)

// newLooks draws from a stream of its own: how often a machine is looked at is no part of what happens. The gaps
// within a world differ, or a rhythm of the world might pass between them.
func newLooks(p *plan, stream uint64) looks {
	if p.closely || p.seed%alwaysLooks == 0 {
		return looks{}
	}
	rng := rand.New(rand.NewPCG(p.seed, stream))
	return looks{rng: rng, gap: shortestGap + rng.IntN(longestGap-shortestGap+1)}
}

// now reports whether this is the moment of a look.
func (l *looks) now() bool {
	if l.rng == nil {
		return true
	}
	if l.left--; l.left > 0 {
		return false
	}
	l.left = 1 + l.rng.IntN(2*l.gap-1)
	return true
}
