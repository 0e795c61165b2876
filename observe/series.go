package observe

import (
	"math"
	"time"
)

// Blocks of LatencySpan: its figures are of the present block and those before it, so
// of 25 to 30 seconds.
const (
	blocks    = 6
	lateBlock = LatencySpan / blocks
)

// Moments of a curve: as many as half a minute needs. For the run's items it is as many as
// its longest sparkline needs.
const (
	shortGap, shortRoom = 500 * time.Millisecond, 64
	longGap, longRoom   = time.Second, 3600
)

// A series holds the counts of one lane, or of the run: in all, since the last sample, and
// recent ones.
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

// heldVotes is the number of pictures by which the bound of a lane is judged.
const heldVotes = 8

func newSeries(name string) *series {
	return &series{
		name: name, items: curve{gap: shortGap, room: shortRoom}, calls: curve{gap: shortGap, room: shortRoom},
	}
}

// take adds the counts between two moments of the run.
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

// late returns the latencies of answers over the last LatencySpan.
func (s *series) late() (sum histogram) {
	for k := range s.blocks {
		if b := &s.blocks[k]; b.slowest > 0 {
			sum.add(&b.answers)
		}
	}
	return sum
}

// mean returns the calls from which means are taken: those of the last LatencySpan, or all
// calls if there were none in it.
func (s *series) mean() (sum figures) {
	for k := range s.blocks {
		sum.add(&s.blocks[k].figures)
	}
	if sum.calls == 0 {
		return s.total.figures
	}
	return sum
}

// left returns the number of its items still to do, or UnknownTotal.
func (s *series) left() int {
	if s.work.Items == 0 {
		return UnknownTotal
	}
	return max(0, s.work.Items-s.total.ended()-s.total.notRun)
}

// leftBytes returns the bytes of the items that are left; 0: not known.
func (s *series) leftBytes() int64 {
	if s.total.bytes == 0 && s.total.ended()+s.total.notRun > 0 {
		return 0 // it is not known how much has ended
	}
	return max(0, s.work.Bytes-s.total.bytes)
}

// pending returns the seconds until it ends, at its recent speed or else at that of the whole
// run; negative: not known.
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

// heldBy returns the bound that held the lane back in most of the latest pictures. Of bounds
// with equal counts it takes the latest.
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
