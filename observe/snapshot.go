package observe

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// UnknownTotal is the length of an input that has not been read to its end.
const UnknownTotal = -1

// A Snapshot is a run at one moment. Every display of a run shows it.
type Snapshot struct {
	At    time.Time // of the run's latest event, at most a period old
	Began time.Time
	State State

	Total    int // items of the whole input; UnknownTotal
	Before   int // of these, ended by earlier runs
	Answered int // items of this run that have an answer
	Failed   int // items of this run that failed for good
	NotRun   int // items of this run that were taken and let go

	Calls     int // that have ended
	Throttled int // of these, refused for now (429, 503, 529)
	Broke     int // of these, broken, whatever came of it
	Truncated int // items whose answer was cut off at its length limit
	Filtered  int // items whose answer a content filter has cut short or emptied
	Cooldowns int // waves of refusals

	Redistributed int       // times a parked item was given out again
	LastEnd       time.Time // of the latest event before which an item ended; zero: none has

	Concurrency int           // ceiling on calls in flight
	InFlight    int           // calls
	Oldest      time.Duration // of these, since the first left; 0: there is none
	Slowest     time.Duration // of all answers so far
	Waiting     int           // items that wait, in all
	InputEnded  bool          // no more items come, though the input may have more
	Parked      int           // of these, after a refusal
	Delayed     int           // of these, for themselves
	FirstDue    time.Time     // when the first delayed one may go; zero: there is none

	Speed    float64       // items ended a second, over the last SpeedSpan
	P50, P95 time.Duration // of answers, over the last LatencySpan; 0: there were none

	Bottleneck Bottleneck
	Ledger     Ledger  // since the run began
	Allowed    float64 // items a second that the limits, the windows and the concurrency let through; +Inf: not known
	Efficiency float64 // items answered, of those that Allowed let through since the beginning, 0..1; 0: not known

	Ends  Forecast
	Spent Spent
	InAll Estimate       // USD, at the end
	Money batch.Spending // against the run's budget, if it has one

	Failures       []Failure // most frequent first
	Lanes          []Lane    // that which ends last first, as far as that is known; then by name
	OfLanes        int       // lanes in all: more than MaxLanes are not listed one by one
	Open, HalfOpen int       // lanes whose breaker is
}

// Spans of the figures.
const (
	SpeedSpan      = 10 * time.Second // steady enough to read, short enough to show a cooldown
	LatencySpan    = 30 * time.Second
	BottleneckSpan = 4 * time.Second // over which what holds the run back is judged
	MaxLanes       = 32              // that are listed one by one
)

// A State is the phase of a run.
type State uint8

// The states.
const (
	Running  State = iota
	Paused         // it starts nothing until it is resumed
	Draining       // it ends softly: what is in flight finishes
	Stopped        // no lane is left: what is in flight finishes
	Over           // it has ended
)

var stateWords = [...]string{"running", "paused", "draining", "stopped", "over"}

func (s State) String() string { return stateWords[s] }

// Bottleneck says what holds a run back, over the last BottleneckSpan, and what would next. The name
// changes when another bound has led for two seconds.
type Bottleneck struct {
	By          limiter.Bound
	Share       float64       // of the last BottleneckSpan, 0..1
	Second      limiter.Bound // the next largest, from a share of 0.3 on; else none
	SecondShare float64
	Lane        string    // the lane that it is about; "" for none, or for many
	Since       time.Time // start of its hold on the run

	Next   limiter.Bound // what would bind if By were gone; none if that is not known
	Factor float64       // at how many times the speed; 0: not known
	Then   limiter.Bound // and after that
}

// Spent is a run's consumption.
type Spent struct {
	provider.Usage
	Doubtful provider.Doubtful // calls that may be billed in addition
	USD      float64           // of what has a price
	Unpriced int               // items without one
	Priced   int               // items with one
}

// An Estimate is a number that is not known yet.
type Estimate struct {
	Likely    float64
	PlusMinus float64 // half of the interval that holds in four cases of five
	Known     bool
}

// A Forecast is the end of a run, as times from the snapshot's moment on.
type Forecast struct {
	Low, Likely, High time.Duration // in four cases of five it is between Low and High
	Known             bool
	Why               string        // why it is not known: "early", "total", "outage", "paused", "over"; "" if it is
	Left              time.Duration // of an outage or a pause: the work that is left
	Lane              string        // the one that ends last, of several
	Others            time.Duration // when the others have ended
}

// A Failure is one way in which items failed for good.
type Failure struct {
	Kind     string    `json:"kind"`    // as in the errors file
	Code     string    `json:"code"`    // HTTP status, or the provider's code; ""
	Message  string    `json:"message"` // without digits and quoted text, by which it is known
	Count    int       `json:"count"`
	Examples []Example `json:"examples"` // at most three, the first ones
}

// An Example is one item that failed.
type Example struct {
	Line    int    `json:"line"`    // in the input, from 1; 0: not known
	ID      string `json:"id"`      // "" if it has none
	Message string `json:"message"` // at most 200 runes
}

// A Lane is a snapshot of one lane.
type Lane struct {
	batch.LaneStatus
	NextBound limiter.Bound // what holds its next call back: its own, or the run's
	Speed     float64       // items ended a second
	P50, P95  time.Duration
	Answered  int
	Failed    int
	NotRun    int
	Truncated int
	Calls     int // that have ended
	Throttled int
	Broke     int
	Left      int                         // items that are still to do; UnknownTotal
	LeftBytes int64                       // of the requests of these; 0: not known
	Spent     Spent                       // by its items
	Used      [limiter.Dimensions]float64 // share of each limit that was drawn over the last SpeedSpan; 0: it is not known
}

// Snapshot returns a snapshot of the run at its latest event, at most a period ago, or at its end.
// now is the moment of asking: it decides how long a call has been under way. Any goroutine
// may ask, at any time. The snapshot is the caller's own.
func (r *Recorder) Snapshot(now time.Time) Snapshot {
	failures := r.failures.list()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.picture(now, failures)
}

// SnapshotAndTimes returns a snapshot and the times of each lane, by name, since the run began. Both are of
// one moment: the calls of a lane are as many as its times.
func (r *Recorder) SnapshotAndTimes(now time.Time) (Snapshot, []Times) {
	failures := r.failures.list()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.picture(now, failures), r.times()
}

// picture returns a snapshot with failures, the forecast, and what depends on the moment of asking.
func (r *Recorder) picture(now time.Time, failures []Failure) Snapshot {
	p := r.snapshot()
	p.Failures, p.Ends, p.InAll = failures, r.ends, r.inAll
	if r.holder == nil {
		p.At, p.Began = now, now
	}
	if oldest := r.last.Run.Oldest; !oldest.IsZero() && p.InFlight > 0 {
		p.Oldest = max(0, now.Sub(oldest))
	}
	return p
}

// foresee updates the forecast of the run's end and cost. It runs with each snapshot, whether
// or not anybody asks, so that the forecast does not depend on that.
func (r *Recorder) foresee() {
	p := r.snapshot()
	r.ends = r.forecast.forecastEnd(&p, r.cfg.Work)
	r.inAll = r.forecast.estimateCost(&p, r.cfg.Work)
}

// snapshot returns a snapshot without failures, without the forecast, and without what depends on
// the moment of asking.
func (r *Recorder) snapshot() Snapshot {
	t, run, late := &r.run.total, &r.last.Run, r.run.recentLatencies()
	p := Snapshot{
		At: r.at, Began: r.began, State: r.state, Before: r.cfg.Before, Total: r.total(),
		Answered: t.answered, Failed: t.failed, NotRun: t.notRun, Truncated: t.truncated, Filtered: t.filtered, Spent: t.cost(),
		Calls: t.calls, Throttled: t.throttled, Broke: t.broke, Slowest: t.slowest,
		Cooldowns: int(run.Counters.Cooldowns), Redistributed: int(run.Counters.Redistributed), LastEnd: r.lastEnd, Concurrency: run.Concurrency, Speed: r.run.items.speed(SpeedSpan),
		Bottleneck: r.bottleneck, Ledger: r.account, Allowed: r.allowedNow, Money: run.Money,
	}
	p.P50, p.P95 = late.quantiles()
	if r.allowance > 0 {
		p.Efficiency = min(1, float64(r.answeredAllowed)/r.allowance)
	}
	if r.state != Over { // or else nothing waits, and no call is under way
		p.InFlight, p.Open, p.HalfOpen = run.InFlight, r.last.Open, r.last.HalfOpen
		p.Waiting, p.InputEnded = run.Held, run.InputEnded
		p.Parked, p.Delayed, p.FirstDue = run.Parked, run.Delayed, run.FirstDue
	}
	r.addLanes(&p)
	return p
}

// total returns the number of items in the whole input; UnknownTotal until it is known.
func (r *Recorder) total() int {
	run := &r.last.Run
	switch {
	case r.cfg.Total > 0:
		return r.cfg.Total
	case r.state == Over:
		return r.cfg.Before + r.run.total.ended() + r.run.total.notRun
	case run.Total > 0:
		return r.cfg.Before + run.Total
	case run.InputEnded:
		return r.cfg.Before + int(run.Counters.Offered)
	}
	return UnknownTotal
}

// quantiles returns the median and the 95th percentile.
func (h *histogram) quantiles() (p50, p95 time.Duration) {
	b := h.buckets()
	return b.Quantile(0.50), b.Quantile(0.95)
}

// addLanes adds the lanes that have a slot to the snapshot. Those are the lanes that the run
// reported, those with counts, and those with work to do.
func (r *Recorder) addLanes(p *Snapshot) {
	p.OfLanes = r.last.Known
	pending := map[string]float64{}
	for slot, of := range r.lanes[:noSlot] {
		if of == nil {
			continue
		}
		l := r.laneSnapshot(of)
		if slot == otherSlot || l.Name != "" || l.Answered+l.Failed+int(l.Counters.Calls) > 0 || of.work.Items > 0 {
			l.Name = of.name
			pending[of.name] = of.secondsLeft()
			p.Lanes = append(p.Lanes, l)
		}
	}
	p.OfLanes = max(p.OfLanes, len(p.Lanes))
	slices.SortStableFunc(p.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(pending[b.Name], pending[a.Name]), cmp.Compare(a.Name, b.Name))
	})
}

// laneSnapshot describes one lane. Without a status from the run its Name is empty and its Rate
// unknown (+Inf). After the end nothing of it waits or is in flight.
func (r *Recorder) laneSnapshot(of *series) Lane {
	l := Lane{
		NextBound: of.usualBound(), Speed: of.items.speed(SpeedSpan), Answered: of.total.answered, Failed: of.total.failed,
		NotRun: of.total.notRun, Truncated: of.total.truncated, Calls: of.total.calls, Throttled: of.total.throttled, Broke: of.total.broke, Left: of.left(), LeftBytes: of.leftBytes(), Spent: of.total.cost(),
	}
	late := of.recentLatencies()
	l.P50, l.P95 = late.quantiles()
	s := r.status(of.name)
	if s == nil {
		l.Rate = math.Inf(1)
		return l
	}
	l.LaneStatus = *s
	if r.state == Over {
		l.InFlight, l.Parked, l.Delayed, l.FirstDue, l.LastDue = 0, 0, 0, time.Time{}, time.Time{}
	}
	l.Used = r.used(&l.LaneStatus, of)
	return l
}

// status returns the lane's latest status from the run; nil: there is none.
func (r *Recorder) status(name string) *batch.LaneStatus {
	for k := range r.last.Lanes {
		if s := &r.last.Lanes[k]; s.Name == name {
			return s
		}
	}
	return nil
}

// used returns the share of each limit that calls drew over the last SpeedSpan. Refused calls drew
// nothing.
func (r *Recorder) used(l *machine.LaneStatus, of *series) (used [limiter.Dimensions]float64) {
	mean := of.mean()
	speed := of.calls.speed(SpeedSpan)
	if mean.calls > 0 {
		speed *= 1 - float64(mean.throttled)/float64(mean.calls)
	}
	for k, draw := range r.drawPerItem(l, &mean) {
		if limit := &l.View.Limits[k]; limit.Known() && limit.Refill > 0 {
			used[k] = speed * draw / limit.Refill
		}
	}
	return used
}
