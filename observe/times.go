package observe

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
)

// TimeEnds holds the longest time in each bucket of a [Histogram]: 10 ms, doubling to 655.36 s.
// An answer seldom takes longer, and half as many buckets would hide what a limit does to it.
var TimeEnds = func() (ends [timeBuckets - 1]time.Duration) {
	for k := range ends {
		ends[k] = shortTime << k
	}
	return ends
}()

const (
	shortTime   = 10 * time.Millisecond
	timeBuckets = 18 // the last is for all longer times
)

// A Histogram counts times since the run began.
type Histogram struct {
	Counts [timeBuckets]int // by bucket: of the times up to its end in TimeEnds, without those of shorter buckets
	Sum    time.Duration    // of all times
}

// Count returns the number of times.
func (h *Histogram) Count() (n int) {
	for _, k := range h.Counts {
		n += k
	}
	return n
}

// note adds a time to its bucket and to the sum.
func (h *Histogram) note(d time.Duration) {
	d = max(0, d)
	bucket := 0
	if d > shortTime {
		bucket = min(timeBuckets-1, bits.Len64(uint64((d-1)/shortTime)))
	}
	h.Counts[bucket]++
	h.Sum += d
}

// Add adds the times of another histogram.
func (h *Histogram) Add(g *Histogram) {
	for k, n := range g.Counts {
		h.Counts[k] += n
	}
	h.Sum += g.Sum
}

// Times holds the times of a lane's calls and items.
type Times struct {
	Lane    string    // its name; OtherLanes; "" for items that ended on no lane
	Answers Histogram // of calls that were answered, to the end of the answer
	Others  Histogram // of all other calls
	Queued  Histogram // of items that were called, before their first call
	Between Histogram // of items that were called more than once, between their calls
}

func (t *Times) add(u *Times) {
	t.Answers.Add(&u.Answers)
	t.Others.Add(&u.Others)
	t.Queued.Add(&u.Queued)
	t.Between.Add(&u.Between)
}

// noteCall counts the time of a call.
func (t *Times) noteCall(c *batch.Call) {
	if c.Err == nil {
		t.Answers.note(c.Latency)
		return
	}
	t.Others.note(c.Latency)
}

// noteEnd counts the waits of an item.
func (t *Times) noteEnd(e *batch.End) {
	if e.Calls > 0 {
		t.Queued.note(e.Queued)
	}
	if e.Calls > 1 {
		t.Between.note(e.Waited)
	}
}

// times returns the times of each lane since the run began, sorted by name.
func (r *Recorder) times() []Times {
	var all []Times
	for _, of := range r.lanes {
		if of != nil {
			t := of.times
			t.Lane = of.name
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Times) int { return cmp.Compare(a.Lane, b.Lane) })
	return all
}
