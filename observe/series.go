package observe

import (
	"math"
	"time"
)

// Blocks of LatencySpan: figures over it are of the present block and those before it, so
// of 25 to 30 seconds.
const (
	blocks    = 6
	lateBlock = LatencySpan / blocks
)

// Moments of a curve: as many as half a minute needs, or for the run's items as many as
// its longest sparkline.
const (
	shortGap, shortRoom = 500 * time.Millisecond, 64
	longGap, longRoom   = time.Second, 3600
)

// A series is what one lane came to, or the run: in all, since the last sample, and of
// late.
type series struct {
	name  string
	work  Work // that was to be done; 0 items, or bytes, are not known
	total tally
	span  tally // since the last sample

	blocks [blocks]tally
	block  int64 // number of the present one, since the run began
	items  curve // that have ended
	calls  curve // that have ended
	bounds [heldVotes]Bound
	votes  int // that were cast
}

// heldVotes is over how many pictures the bound of a lane is judged.
const heldVotes = 8

func newSeries(name string) *series {
	return &series{
		name: name, items: curve{gap: shortGap, room: shortRoom}, calls: curve{gap: shortGap, room: shortRoom},
	}
}

// take adds what was counted between two moments of the run.
func (s *series) take(fresh *tally, before, at time.Duration) {
	s.total.add(fresh)
	s.span.add(fresh)
	block := int64(at / lateBlock)
	for b := max(s.block+1, block-blocks+1); b <= block; b++ {
		s.blocks[b%blocks] = tally{}
	}
	s.block = max(s.block, block)
	s.blocks[s.block%blocks].add(fresh)
	s.items.rise(before, at, s.total.ended())
	s.calls.rise(before, at, s.total.calls)
}

// late are the latencies of answers over the last LatencySpan.
func (s *series) late() (sum histogram) {
	for k := range s.blocks {
		if b := &s.blocks[k]; b.slowest > 0 {
			sum.add(&b.answers)
		}
	}
	return sum
}

// mean is what a mean of calls is taken from: those over the last LatencySpan, or if there
// were none, all.
func (s *series) mean() (sum figures) {
	for k := range s.blocks {
		sum.add(&s.blocks[k].figures)
	}
	if sum.calls == 0 {
		return s.total.figures
	}
	return sum
}

// left is how many of its items are still to do; UnknownTotal.
func (s *series) left() int {
	if s.work.Items == 0 {
		return UnknownTotal
	}
	return max(0, s.work.Items-s.total.ended()-s.total.notRun)
}

// leftBytes are those of the items that are left; 0: not known.
func (s *series) leftBytes() int64 {
	if s.total.bytes == 0 && s.total.ended()+s.total.notRun > 0 {
		return 0 // nobody says how much has ended
	}
	return max(0, s.work.Bytes-s.total.bytes)
}

// pending is in how many seconds it ends at the speed of late, or else of the whole run;
// negative: that is not known.
func (s *series) pending() float64 {
	left, speed := s.left(), s.items.speed(LatencySpan)
	if speed == 0 && s.items.now() > 0 {
		speed = float64(s.total.ended()) / s.items.now().Seconds()
	}
	switch {
	case left <= 0:
		return float64(left)
	case speed == 0:
		return math.Inf(1)
	}
	return float64(left) / speed
}

// vote notes what holds the lane back now.
func (s *series) vote(b Bound) {
	s.bounds[s.votes%heldVotes] = b
	s.votes++
}

// heldBy is what held the lane back in most of the latest pictures; of equal ones, the
// latest.
func (s *series) heldBy() (most Bound) {
	best := 0
	for k := range min(s.votes, heldVotes) {
		b, n := s.bounds[(s.votes-1-k)%heldVotes], 0
		for _, other := range s.bounds[:min(s.votes, heldVotes)] {
			if other == b {
				n++
			}
		}
		if n > best {
			most, best = b, n
		}
	}
	return most
}
