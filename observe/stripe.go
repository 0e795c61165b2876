package observe

import (
	"errors"
	"sync"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// stripes is the number of workers that can count at once without waiting for each other. It
// is a power of two.
const stripes = 8

// A stripe holds the counts of some workers since it was last emptied. The room behind it keeps
// neighbours off its cache lines.
type stripe struct {
	mu     sync.Mutex
	lanes  [slots]*tally // nil: nothing was ever counted
	latest string        // the lane that was counted last, as a rule the next one too; the run's own string, not a part of an item's text
	slot   int           // of that
	_      [128]byte
}

// lane returns the tally of a lane, which must be used only under the lock.
func (s *stripe) lane(names *names, lane string) *tally {
	if lane != s.latest || lane == "" {
		s.latest, s.slot = lane, names.slot(lane)
	}
	if s.lanes[s.slot] == nil {
		s.lanes[s.slot] = new(tally)
	}
	return s.lanes[s.slot]
}

// empty moves the counts of one slot into sum.
func (s *stripe) empty(slot int, sum *tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.lanes[slot]; t != nil && !t.empty() {
		sum.add(t)
		*t = tally{}
	}
}

func (r *Recorder) stripe(worker int) *stripe { return &r.stripes[uint(worker)%stripes] }

// call counts a call.
func (r *Recorder) call(c *batch.Call) {
	throttled, broke := c.Err != nil && c.Kind.Cools(), c.Err != nil && r.broke(c)
	bucket := bucketOf(c.Latency)
	s := r.stripe(c.Worker)
	s.mu.Lock()
	t := s.lane(&r.names, c.Lane)
	t.calls++
	t.took, t.gated = t.took+max(0, c.Latency), t.gated+max(0, c.Gated)
	t.used = t.used.Add(c.Usage)
	switch {
	case throttled:
		t.throttled++
	case broke:
		t.broke++
	case c.Err == nil:
		t.answers[bucket]++
		t.slowest = max(t.slowest, c.Latency, 1)
	}
	s.mu.Unlock()
}

// broke reports whether a failed call broke. Such a call was not refused, its answer named no
// fault of the call, and we did not cut it off.
func (r *Recorder) broke(c *batch.Call) bool {
	return c.Kind.BreakerCounts() && !(c.Kind == provider.Unknown && r.notRun(c.Err))
}

// notRun reports whether an error is that of an item that was let go. An error's own method Is
// may panic.
func (r *Recorder) notRun(err error) bool {
	defer r.caught("an error's Is")
	return errors.Is(err, batch.ErrNotRun)
}

// end counts an item.
func (r *Recorder) end(e *batch.End) {
	notRun := e.Err != nil && r.notRun(e.Err)
	failed := e.Err != nil && !notRun
	if failed {
		r.failed(e)
	}
	mark := provider.Unknown
	if e.Err == nil {
		mark, _ = provider.FinishKind(e.Finish)
	}
	asked := e.Err == nil || e.Usage != (provider.Usage{})
	usd, priced := 0.0, false
	if asked && r.cfg.Price != nil {
		usd, priced = r.price(e)
	}
	var bytes int64
	if r.cfg.Size != nil {
		bytes = r.size(e)
	}
	s := r.stripe(e.Worker)
	s.mu.Lock()
	t := s.lane(&r.names, e.Lane)
	switch {
	case notRun:
		t.notRun++
	case failed:
		t.failed++
	default:
		t.answered++
	}
	switch mark {
	case provider.Truncated:
		t.truncated++
	case provider.Refused:
		t.filtered++
	}
	t.spent, t.doubtful, t.bytes = t.spent.Add(e.Usage), t.doubtful.Add(e.Doubtful), t.bytes+bytes
	switch {
	case priced:
		t.priced++
		t.usd += usd
	case asked:
		t.unpriced++
	}
	s.mu.Unlock()
}

// price returns the cost of an item.
func (r *Recorder) price(e *batch.End) (usd float64, ok bool) {
	defer r.caught("Price")
	usd, ok = r.cfg.Price(e.In, e.Usage)
	return usd, ok && provider.IsCost(usd)
}

// size returns the length of an item's request.
func (r *Recorder) size(e *batch.End) int64 {
	defer r.caught("Size")
	return max(0, r.cfg.Size(e.In))
}
