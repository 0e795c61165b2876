package forecast

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// MaxSample is the most calls that a Sample keeps and Run runs: a second's work.
const MaxSample = 100_000

// Call is one item: its draw on its lane's limits, and the median time of its answer.
type Call struct {
	Lane    int // index of the lane
	Cost    limiter.Cost
	Latency time.Duration
}

// Sample is a batch, or an even sample of one. The zero value is empty and ready.
type Sample struct {
	calls []drawn
	share uint64 // a call is kept if its draw is at most that; 0: all are
	seen  uint64
	total []lot
}

// lot sums up the calls of one lane, kept or not.
type lot struct {
	calls int
	cost  limiter.Cost
}

type drawn struct {
	draw uint64
	Call
}

// Add takes the next call of the batch.
func (s *Sample) Add(c Call) {
	for len(s.total) <= c.Lane {
		s.total = append(s.total, lot{})
	}
	t := &s.total[c.Lane]
	t.calls++
	t.cost = limiter.Cost{
		Requests: t.cost.Requests + c.Cost.Requests, Input: t.cost.Input + c.Cost.Input, Output: t.cost.Output + c.Cost.Output,
	}
	s.seen++
	if d := draw(s.seen); s.share == 0 || d <= s.share {
		s.calls = append(s.calls, drawn{d, c})
	}
	if len(s.calls) > MaxSample {
		s.thin()
	}
}

// Len returns the number of calls in the batch.
func (s *Sample) Len() int { return int(s.seen) }

// Kept returns how many of them are in the sample.
func (s *Sample) Kept() int { return len(s.calls) }

// Smaller returns a sample of the same batch with at most that many calls, but at least 1.
func (s *Sample) Smaller(most int) *Sample {
	t := *s
	t.calls = append([]drawn(nil), s.calls...)
	for len(t.calls) > max(1, most) {
		t.thin()
	}
	return &t
}

// thin leaves about half. It draws calls by a hash of their number instead of every second
// one, as files may alternate, between models for example.
func (s *Sample) thin() {
	if s.share == 0 {
		s.share = 1<<64 - 1
	}
	s.share /= 2
	kept := s.calls[:0]
	for _, c := range s.calls {
		if c.draw <= s.share {
			kept = append(kept, c)
		}
	}
	s.calls = kept
}

// draw is the finalizer of SplitMix64: it scatters neighbours.
func draw(n uint64) uint64 {
	n *= 0x9E3779B97F4A7C15
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31
}
