package model

import "math"

// This file finds the refill of a bucket that nobody tells of. Between two moments at which the
// bucket was empty, the calls let in show the inflow, less any overflow. The overflow depends
// on the depth, so a few depths are supposed in parallel. The law believes the one for which
// successive stretches agree best on the rate: with each other, and with the calls let in while
// the bucket was empty. The stretches alone cannot tell a deep bucket that is asked for bursts
// from a shallow one that refills as fast as they are.
var depths = [...]float64{0, 1.5, 60} // seconds of refill; at least one call

const (
	inflowSteps      = 10   // halve the range until it is a thousandth of what it was
	scoreMemory      = 0.7  // of a stretch's disagreement, at the next one
	mostDisagreement = 0.2  // nats²: rates apart by more than half have changed
	betterDepth      = 0.7  // of the score of a deeper one: deeper flatters nobody
	rateMemory       = 60.0 // seconds: what is long past says nothing of now
	raisedSpan       = 5.0  // seconds of evidence that stand once a rate was raised
	ebbLeast         = 20   // calls, for the share of them that was let in to be right to a quarter
	ebbOpen          = 0.8  // share: where more is let in it may be that nothing is empty, and chance refuses
	ebbClosed        = 0.5  // of what is let in on the whole: where less is let in something is closed, as a window is
)

// An interval lies between two moments at which the bucket was empty.
type interval struct {
	from, to float64
	fastest  float64 // calls per second: the pace that was refused in the end
}

// supposed is the evidence under one depth.
type supposed struct {
	calls, span float64 // so much flowed in, in so many seconds
	latest      float64 // rate of the latest stretch
	score       float64 // how much successive stretches disagree
}

// inflow is the rate of refill, under each depth. The zero inflow knows nothing, and takes no
// room. Later lessons do not reach a copy: they are written to fresh memory.
type inflow struct {
	of   *[len(depths)]supposed // nil: nothing is known
	best int
}

// renew moves the evidence to memory of its own, to be changed.
func (f *inflow) renew() {
	fresh := new([len(depths)]supposed)
	if f.of != nil {
		*fresh = *f.of
	}
	f.of = fresh
}

func depthAt(i int, rate float64) float64 { return max(1, depths[i]*rate) }

// take adds a stretch to the evidence. ebbed is the inflow per second while the bucket was
// empty; 0: that is not known.
func (f *inflow) take(s *sends, e interval, ebbed float64) {
	span := e.to - e.from
	keep := math.Exp(-span / rateMemory)
	witness := ebbed > ebbClosed*s.accepted(e.from, e.to)/span
	f.renew()
	for i := range f.of {
		h := &f.of[i]
		rate := s.refill(e, func(r float64) float64 { return depthAt(i, r) })
		if h.latest > 0 {
			h.score = scoreMemory*h.score + disagreement(rate, h.latest)
		}
		if witness {
			h.score += disagreement(rate, ebbed)
		}
		h.latest = rate
		h.calls, h.span = keep*h.calls+rate*span, keep*h.span+span
	}
	f.choose()
}

// disagreement of two rates is the square of the factor between them, in nats. A rate that has fallen or risen
// disagrees under every depth, so one stretch decides little.
func disagreement(a, b float64) float64 {
	d := math.Log(a / b)
	return min(d*d, mostDisagreement)
}

// choose prefers a shallower depth only if it agrees clearly better.
func (f *inflow) choose() {
	best := len(f.of) - 1
	for i := best - 1; i >= 0; i-- {
		if f.of[i].score < betterDepth*f.of[best].score {
			best = i
		}
	}
	f.best = best
}

func (f *inflow) rate() float64 {
	h := &f.of[f.best]
	return h.calls / h.span
}

// begin starts from one interval, and the depth that the bucket was found to have in it.
func (f *inflow) begin(s *sends, e interval, depth, ebbed float64) {
	*f = inflow{}
	f.take(s, e, ebbed)
	for i := range f.of { // a tie-break: the depth nearest to the one found is believed at first
		f.of[i].score += 0.01 * math.Abs(math.Log((depth+1)/(depthAt(i, f.of[i].latest)+1)))
	}
	f.choose()
}

// known reports whether there is any evidence.
func (f *inflow) known() bool { return f.of != nil && f.of[f.best].span > 0 }

// evidence returns the calls that are believed to have flowed in, and the seconds that took.
func (f *inflow) evidence() (calls, span float64) {
	if f.of == nil {
		return 0, 0
	}
	return f.of[f.best].calls, f.of[f.best].span
}

// recall takes up evidence of another time, whose depth is not known.
func (f *inflow) recall(calls, span float64) {
	f.renew()
	for i := range f.of {
		f.of[i] = supposed{calls: calls, span: span, latest: calls / span}
	}
	f.best = len(f.of) - 1
}

// fade keeps only as much of the evidence as new evidence can overrule.
func (f *inflow) fade() {
	if f.of == nil {
		return
	}
	f.renew()
	for i := range f.of {
		if h := &f.of[i]; h.span > raisedSpan {
			h.calls, h.span = h.calls*raisedSpan/h.span, raisedSpan
		}
	}
}

// refill returns the rate at which a bucket of that depth is empty at both ends of a stretch:
// at least the calls let in per second, and at most fastest.
func (s *sends) refill(e interval, depth func(rate float64) float64) float64 {
	low := s.accepted(e.from, e.to) / (e.to - e.from)
	high := max(low, e.fastest)
	if s.replay(dimRequests, 0, high, depth(high), e.from, e.to) <= 0 {
		return high
	}
	for range inflowSteps {
		if mid := (low + high) / 2; s.replay(dimRequests, 0, mid, depth(mid), e.from, e.to) > 0 {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}

// ebbed returns the inflow per second of a stretch that begins with an empty bucket. Calls left
// at the refused pace, and only as many were let in as flowed in, however deep the bucket is.
// 0: the stretch does not show it.
func (s *sends) ebbed(e interval) float64 {
	sent, let := s.sent(e.from, e.to), s.accepted(e.from, e.to)
	if sent < ebbLeast || let > ebbOpen*sent {
		return 0
	}
	return e.fastest * let / sent
}

// surplus returns the most that was let in beyond a rate within any part of a stretch of time.
// A bucket that refills at that rate is at least that deep.
func (s *sends) surplus(from, to, rate float64) (most float64) {
	t, over := from, 0.0
	for i := s.after(from); i < s.count; i++ {
		e := s.get(i)
		if e.from > to {
			break
		}
		over = max(0, over-rate*(e.to-t)) + e.drew(dimRequests)*e.share(from, to)
		t, most = e.to, max(most, over)
	}
	return most
}
