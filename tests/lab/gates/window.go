package gates

import "time"

// A Window admits n calls in each stretch of its length, counted from the world's beginning.
type Window struct {
	Charged bool // a refused call also costs: the next window pays the debt

	n     int
	width time.Duration
	nth   time.Duration
	left  int
}

// NewWindow makes one. A window that would hold less than a call holds one.
func NewWindow(n int, width time.Duration) *Window {
	n = max(1, n)
	return &Window{n: n, width: width, left: n}
}

func (w *Window) advance(at time.Duration) {
	for nth := at / w.width; w.nth < nth; w.nth++ {
		owed := 0
		if w.Charged {
			owed = min(0, w.left)
		}
		w.left = w.n + owed
	}
}

func (w *Window) end() time.Duration { return (w.nth + 1) * w.width }

// Ask is part of [Gate].
func (w *Window) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	w.advance(at)
	if w.left > 0 {
		return true, 0
	}
	return false, w.end() - at
}

// Take is part of [Gate]. The neighbour's calls no longer charge a window that is over by
// the oracle's clock.
func (w *Window) Take(at time.Duration, _ float64, _ time.Duration) {
	w.advance(at)
	if at/w.width == w.nth {
		w.left--
	}
}

// Refused is part of [Gate].
func (w *Window) Refused(at time.Duration, _ float64) {
	if w.Charged {
		w.advance(at)
		w.left = max(-w.n, w.left-1)
	}
}

// Next is part of [Gate].
func (w *Window) Next(at time.Duration, _ float64) time.Duration {
	at = max(at, w.nth*w.width)
	for {
		w.advance(at)
		if w.left > 0 {
			return at
		}
		at = w.end()
	}
}

// A Sliding window never lets in more than n calls in any stretch of its length.
type Sliding struct {
	Charged bool // a refused call counts too, up to twice n

	n     int
	width time.Duration
	log   []time.Duration // the calls that count, oldest first
}

// NewSliding makes one. A window that would hold less than a call holds one.
func NewSliding(n int, width time.Duration) *Sliding {
	return &Sliding{n: max(1, n), width: width}
}

func (s *Sliding) advance(at time.Duration) {
	gone := 0
	for gone < len(s.log) && s.log[gone]+s.width <= at {
		gone++
	}
	s.log = s.log[gone:]
}

// Ask is part of [Gate].
func (s *Sliding) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	s.advance(at)
	over := len(s.log) - s.n
	if over < 0 {
		return true, 0
	}
	return false, s.log[over] + s.width - at
}

// Take is part of [Gate].
func (s *Sliding) Take(at time.Duration, _ float64, _ time.Duration) {
	s.log = append(s.log, at)
}

// Refused is part of [Gate].
func (s *Sliding) Refused(at time.Duration, _ float64) {
	if s.Charged && len(s.log) < 2*s.n {
		s.log = append(s.log, at)
	}
}

// Next is part of [Gate].
func (s *Sliding) Next(at time.Duration, tokens float64) time.Duration {
	_, wait := s.Ask(at, tokens)
	return at + wait
}
