package observe

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
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
	total counts
	span  counts // since the last sample
	times Times  // in all

	blocks [blocks]counts
	block  int64 // number of the present one, since the run began
	items  curve // that have ended
	calls  curve // that have ended
	bounds [boundVotes]limiter.Bound
	votes  int // that were cast
}

// boundVotes is the number of snapshots by which the bound of a lane is judged.
const boundVotes = 8

func newSeries(name string) *series {
	return &series{
		name: name, items: curve{gap: shortGap, room: shortRoom}, calls: curve{gap: shortGap, room: shortRoom},
	}
}

// addCounts adds what happened between two moments of the run.
func (s *series) addCounts(fresh *counts, before, at time.Duration) {
	s.total.add(fresh)
	s.span.add(fresh)
	block := int64(at / lateBlock)
	for b := max(s.block+1, block-blocks+1); b <= block; b++ {
		s.blocks[b%blocks] = counts{}
	}
	s.block = max(s.block, block)
	s.blocks[s.block%blocks].add(fresh)
	s.items.addRise(before, at, s.total.ended())
	s.calls.addRise(before, at, s.total.calls)
}

// recentLatencies returns the latencies of answers over the last LatencySpan.
func (s *series) recentLatencies() (sum histogram) {
	for k := range s.blocks {
		if b := &s.blocks[k]; b.slowest > 0 {
			sum.add(&b.answers)
		}
	}
	return sum
}

// mean returns the figures from which means are taken: those of the last LatencySpan, or of the
// whole run if no call ended in it.
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

// secondsLeft returns the seconds until the lane or run ends; negative: unknown. It takes the
// recent speed, or else that of the whole run.
func (s *series) secondsLeft() float64 {
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
func (s *series) vote(b limiter.Bound) {
	s.bounds[s.votes%boundVotes] = b
	s.votes++
}

// usualBound returns the bound that held the lane back in most of the latest snapshots. Of bounds
// with equal counts it takes the latest.
func (s *series) usualBound() (most limiter.Bound) {
	best := 0
	for k := range min(s.votes, boundVotes) {
		b, n := s.bounds[(s.votes-1-k)%boundVotes], 0
		for _, other := range s.bounds[:min(s.votes, boundVotes)] {
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

// A curve is a count over time, at its latest moments. Between two of them it rises evenly;
// before the earliest it was flat.
type curve struct {
	gap    time.Duration // moments nearer to each other are one
	room   int           // moments
	points []point       // a ring, once it is full
	first  int           // the earliest
}

type point struct {
	at time.Duration // since the run began
	n  float64
}

func (c *curve) get(k int) point { return c.points[(c.first+k)%len(c.points)] }

// add notes the count at a moment, which is not before the latest one.
func (c *curve) add(at time.Duration, n float64) {
	p, size := point{at, n}, len(c.points)
	if size >= 2 && at-c.get(size-2).at < c.gap {
		c.points[(c.first+size-1)%size] = p
		return
	}
	if size < c.room {
		c.points = append(c.points, p)
		return
	}
	c.points[c.first] = p
	c.first = (c.first + 1) % size
}

// addRise notes the count at a moment, and that it was zero before the first moment.
func (c *curve) addRise(before, at time.Duration, n int) {
	if len(c.points) == 0 && before < at {
		c.add(before, 0)
	}
	c.add(at, float64(n))
}

// at returns the count at a moment of the run.
func (c *curve) at(t time.Duration) float64 {
	size := len(c.points)
	if size == 0 {
		return 0
	}
	if t >= c.get(size-1).at {
		return c.get(size - 1).n
	}
	low, high := 0, size-1 // the first moment after t is in (low, high], or the earliest
	for low < high {
		if mid := (low + high) / 2; c.get(mid).at > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	after := c.get(low)
	if low == 0 {
		return after.n
	}
	before := c.get(low - 1)
	return before.n + (after.n-before.n)*float64(t-before.at)/float64(after.at-before.at)
}

// now returns the latest moment; 0: there is none.
func (c *curve) now() time.Duration {
	if len(c.points) == 0 {
		return 0
	}
	return c.get(len(c.points) - 1).at
}

// speed returns the rise a second in the span before the latest moment, or since the
// beginning; 0: no time has passed.
func (c *curve) speed(span time.Duration) float64 {
	now := c.now()
	if span = min(span, now); span <= 0 {
		return 0
	}
	return (c.at(now) - c.at(now-span)) / span.Seconds()
}
