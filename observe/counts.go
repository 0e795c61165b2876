package observe

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// shards is the number of workers that can count at once without waiting for each other. It
// is a power of two.
const shards = 8

// A shard holds the counts of some workers since it was last emptied. The room behind it keeps
// neighbours off its cache lines.
type shard struct {
	mu       sync.Mutex
	lanes    [slots]*tally // nil: nothing was ever counted
	lastLane string        // the lane that was counted last, as a rule the next one too; the run's own string, not a part of an item's text
	lastSlot int           // of that
	_        [128]byte
}

// A tally holds what a shard counts of one lane.
type tally struct {
	counts
	times Times
}

// lane returns the shard's tally of a lane. The caller must hold the lock.
func (s *shard) lane(names *names, lane string) *tally {
	if lane != s.lastLane || lane == "" {
		s.lastLane, s.lastSlot = lane, names.slot(lane)
	}
	if s.lanes[s.lastSlot] == nil {
		s.lanes[s.lastSlot] = new(tally)
	}
	return s.lanes[s.lastSlot]
}

// empty moves the counts of one slot into sum, and its times into times.
func (s *shard) empty(slot int, sum *counts, times *Times) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.lanes[slot]; t != nil && !t.empty() {
		sum.add(&t.counts)
		times.add(&t.times)
		*t = tally{}
	}
}

func (r *Recorder) shard(worker int) *shard { return &r.shards[uint(worker)%shards] }

// countCall adds a call that has ended to the counts of its lane.
func (r *Recorder) countCall(call *batch.Call) {
	throttled, broke := call.Err != nil && call.Kind.Cools(), call.Err != nil && r.broke(call)
	bucket := bucketOf(call.Latency)
	s := r.shard(call.Worker)
	s.mu.Lock()
	tally := s.lane(&r.names, call.Lane)
	tally.calls++
	tally.callTime, tally.gateTime = tally.callTime+max(0, call.Latency), tally.gateTime+max(0, call.Gated)
	tally.used = tally.used.Add(call.Usage)
	switch {
	case throttled:
		tally.throttled++
	case broke:
		tally.broke++
	case call.Err == nil:
		tally.answers[bucket]++
		tally.slowest = max(tally.slowest, call.Latency, 1)
	}
	tally.times.noteCall(call)
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

// countEnd adds an item that has ended to the counts of its lane.
func (r *Recorder) countEnd(end *batch.End) {
	notRun := end.Err != nil && r.notRun(end.Err)
	failed := end.Err != nil && !notRun
	if failed {
		r.failed(end)
	}
	finish := provider.Unknown
	if end.Err == nil {
		finish, _ = provider.FinishKind(end.Finish)
	}
	asked := end.Err == nil || end.Usage != (provider.Usage{})
	usd, priced := 0.0, false
	if asked && r.cfg.Price != nil {
		usd, priced = r.price(end)
	}
	var bytes int64
	if r.cfg.Size != nil {
		bytes = r.size(end)
	}
	s := r.shard(end.Worker)
	s.mu.Lock()
	tally := s.lane(&r.names, end.Lane)
	switch {
	case notRun:
		tally.notRun++
	case failed:
		tally.failed++
	default:
		tally.answered++
	}
	switch finish {
	case provider.Truncated:
		tally.truncated++
	case provider.Refused:
		tally.filtered++
	}
	tally.spent, tally.doubtful, tally.bytes = tally.spent.Add(end.Usage), tally.doubtful.Add(end.Doubtful), tally.bytes+bytes
	switch {
	case priced:
		tally.priced++
		tally.usd += usd
	case asked:
		tally.unpriced++
	}
	tally.times.noteEnd(end)
	s.mu.Unlock()
}

// price returns the cost of an item.
func (r *Recorder) price(e *batch.End) (usd float64, ok bool) {
	defer r.caught("Price")
	usd, ok = r.cfg.Price(e.In, e.Lane, e.Usage)
	return usd, ok && provider.IsCost(usd)
}

// size returns the length of an item's request.
func (r *Recorder) size(e *batch.End) int64 {
	defer r.caught("Size")
	return max(0, r.cfg.Size(e.In))
}

// OtherLanes is the name for all lanes after the first MaxLanes, which are counted together.
const OtherLanes = "other"

// The slots in which calls and items are counted: one for each lane that has a name here,
// one for all others, and one for items that ended on no lane.
const (
	otherSlot = MaxLanes
	noSlot    = MaxLanes + 1
	slots     = MaxLanes + 2
)

// names gives lanes their slots, first come, first served. The table is replaced and never
// changed, so that workers read it without a lock.
type names struct {
	mu    sync.Mutex // for adding lanes
	table atomic.Pointer[map[string]int]
}

// slot returns the number under which a lane is counted. A new lane gets the next free one.
func (n *names) slot(lane string) int {
	switch lane {
	case "":
		return noSlot
	case OtherLanes: // or two lanes would have that name
		return otherSlot
	}
	if table := n.table.Load(); table != nil {
		if k, ok := (*table)[lane]; ok {
			return k
		}
		if len(*table) == MaxLanes {
			return otherSlot
		}
	}
	return n.add(lane)
}

// add gives the lane the next slot, or otherSlot if there is none. It looks the lane up again,
// under the lock: another goroutine may have added it meanwhile.
func (n *names) add(lane string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	table := map[string]int{}
	if old := n.table.Load(); old != nil {
		table = maps.Clone(*old)
	}
	if k, ok := table[lane]; ok {
		return k
	}
	k := len(table)
	if k == MaxLanes {
		return otherSlot
	}
	table[strings.Clone(lane)] = k // it may be a piece of an item's text
	n.table.Store(&table)
	return k
}

// nameOf returns the name of the lane that has the slot; "": no lane has it.
func (n *names) nameOf(slot int) string {
	for name, k := range *n.table.Load() {
		if k == slot {
			return name
		}
	}
	return ""
}

// counts has the numbers of calls and items in some span. The zero value is empty.
type counts struct {
	figures
	answers histogram // latencies of answers
}

// add adds other counts.
func (t *counts) add(u *counts) {
	t.figures.add(&u.figures)
	if u.slowest > 0 {
		t.answers.add(&u.answers)
	}
}

// figures holds the part of counts that fits in a few words.
type figures struct {
	calls, throttled, broke int
	callTime                time.Duration  // time of calls, without that at the gate
	gateTime                time.Duration  // time of calls at the gate
	slowest                 time.Duration  // of answers; 0: there was none
	used                    provider.Usage // by calls

	answered, failed, notRun int
	truncated, filtered      int // of the answered
	priced, unpriced         int
	spent                    provider.Usage // by items, of all their calls
	doubtful                 provider.Doubtful
	usd                      float64
	bytes                    int64 // of the items' requests
}

// add adds the figures of other to f.
func (f *figures) add(other *figures) {
	f.calls, f.throttled, f.broke = f.calls+other.calls, f.throttled+other.throttled, f.broke+other.broke
	f.callTime, f.gateTime, f.slowest = f.callTime+other.callTime, f.gateTime+other.gateTime, max(f.slowest, other.slowest)
	f.used, f.spent = f.used.Add(other.used), f.spent.Add(other.spent)
	f.answered, f.failed, f.notRun = f.answered+other.answered, f.failed+other.failed, f.notRun+other.notRun
	f.truncated, f.filtered = f.truncated+other.truncated, f.filtered+other.filtered
	f.priced, f.unpriced, f.usd = f.priced+other.priced, f.unpriced+other.unpriced, f.usd+other.usd
	f.doubtful, f.bytes = f.doubtful.Add(other.doubtful), f.bytes+other.bytes
}

// cost returns the consumption of the items.
func (f *figures) cost() Spent {
	return Spent{Usage: f.spent, Doubtful: f.doubtful, USD: f.usd, Unpriced: f.unpriced, Priced: f.priced}
}

// ended returns the number of items that ended.
func (f *figures) ended() int { return f.answered + f.failed }

// empty reports whether nothing was counted.
func (f *figures) empty() bool { return f.calls+f.answered+f.failed+f.notRun == 0 }

// meanTook returns the mean time of a call without its time at the gate; 0: there was none.
func (f *figures) meanTook() float64 { return ratio(f.callTime.Seconds(), float64(f.calls)) }

// meanOccupied returns the mean time for which a call holds its place; 0: there was none.
func (f *figures) meanOccupied() float64 {
	return ratio((f.callTime + f.gateTime).Seconds(), float64(f.calls))
}

// A histogram counts the latencies in each bucket.
type histogram [lastBucket + 1]uint32

func (h *histogram) add(g *histogram) {
	for k, n := range g {
		h[k] += n
	}
}

// buckets returns the buckets that are not empty, in order.
func (h *histogram) buckets() (list Buckets) {
	for k, n := range h {
		if n > 0 {
			list = append(list, Bucket{Number: k, Count: int(n)})
		}
	}
	return list
}
