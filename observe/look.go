package observe

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Look returns a picture of the run at its latest event, at most a period ago, or at its end.
// now is the moment of looking: it decides how long a call has been under way. Any goroutine
// may look, at any time. The picture is the caller's own.
func (r *Recorder) Look(now time.Time) Picture {
	failures := r.failures.list()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.picture()
	p.Failures, p.Ends, p.InAll = failures, r.ends, r.inAll
	if r.holder == nil {
		p.At, p.Began = now, now
	}
	if oldest := r.last.Run.Oldest; !oldest.IsZero() && p.InFlight > 0 {
		p.Oldest = max(0, now.Sub(oldest))
	}
	return p
}

// foresee updates the forecast of the run's end and cost. It runs with each picture, whether
// or not anybody looks, so that the forecast does not depend on that.
func (r *Recorder) foresee() {
	p := r.picture()
	r.ends = r.forecast.ends(&p, r.cfg.Work)
	r.inAll = r.forecast.inAll(&p, r.cfg.Work)
}

// picture returns a picture without failures, the forecast, and what depends on the moment of
// looking.
func (r *Recorder) picture() Picture {
	p := Picture{At: r.at, Began: r.began, State: r.state, Before: r.cfg.Before, Total: r.total()}
	r.lookAtItems(&p)
	r.lookAtCalls(&p)
	r.lookAtBounds(&p)
	r.lookAtLanes(&p)
	return p
}

// total returns the number of items in the whole input.
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

func (r *Recorder) lookAtItems(p *Picture) {
	t := &r.run.total
	p.Answered, p.Failed, p.NotRun, p.Truncated, p.Filtered = t.answered, t.failed, t.notRun, t.truncated, t.filtered
	p.Spent = t.cost()
	p.Speed = r.run.items.speed(SpeedSpan)
	p.Cooldowns = int(r.last.Run.Counters.Cooldowns)
	if r.state == Over {
		return // nothing waits
	}
	p.Waiting, p.InputEnded = r.last.Run.Held, r.last.Run.InputEnded
	p.Parked, p.Delayed, p.FirstDue = r.last.Run.Parked, r.last.Run.Delayed, r.last.Run.FirstDue
}

func (r *Recorder) lookAtCalls(p *Picture) {
	t, late := &r.run.total, r.run.late()
	p.Calls, p.Throttled, p.Broke, p.Slowest = t.calls, t.throttled, t.broke, t.slowest
	p.P50, p.P95 = late.quantiles()
	p.Concurrency = r.last.Run.Concurrency
	if r.state == Over {
		return // none is under way
	}
	p.InFlight, p.Open, p.HalfOpen = r.last.Run.InFlight, r.last.Open, r.last.HalfOpen
}

func (r *Recorder) lookAtBounds(p *Picture) {
	p.Held, p.Ledger, p.Allowed = r.held, r.account.ledger(), r.allowing
	if r.allowance > 0 {
		p.Efficiency = min(1, float64(r.earned)/r.allowance)
	}
}

// quantiles returns the median and the 95th percentile.
func (h *histogram) quantiles() (p50, p95 time.Duration) {
	b := h.buckets()
	return b.Quantile(0.50), b.Quantile(0.95)
}

// lookAtLanes describes the lanes that have a slot: those that the run reported, those with
// counts, and those with work to do.
func (r *Recorder) lookAtLanes(p *Picture) {
	p.OfLanes = r.last.Known
	pending := map[string]float64{}
	for slot, of := range r.lanes[:noSlot] {
		if of == nil {
			continue
		}
		l := r.lookAtLane(of)
		if slot == otherSlot || l.Name != "" || l.Answered+l.Failed+int(l.Counters.Calls) > 0 || of.work.Items > 0 {
			l.Name = of.name
			pending[of.name] = of.pending()
			p.Lanes = append(p.Lanes, l)
		}
	}
	p.OfLanes = max(p.OfLanes, len(p.Lanes))
	slices.SortStableFunc(p.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(pending[b.Name], pending[a.Name]), cmp.Compare(a.Name, b.Name))
	})
}

func (r *Recorder) lookAtLane(of *series) Lane {
	l := Lane{
		HeldBy: of.heldBy(), Speed: of.items.speed(SpeedSpan), Answered: of.total.answered, Failed: of.total.failed,
		Throttled: of.total.throttled, Broke: of.total.broke, Left: of.left(), LeftBytes: of.leftBytes(), Spent: of.total.cost(),
	}
	late := of.late()
	l.P50, l.P95 = late.quantiles()
	s := r.told(of.name)
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

// told returns the lane's latest status from the run; nil: there is none.
func (r *Recorder) told(name string) *batch.LaneStatus {
	for k := range r.last.Lanes {
		if s := &r.last.Lanes[k]; s.Name == name {
			return s
		}
	}
	return nil
}

// used returns the share of each limit that calls drew over the last SpeedSpan. Refused calls
// drew nothing.
func (r *Recorder) used(l *machine.LaneStatus, of *series) (used [limiter.Dimensions]float64) {
	mean := of.mean()
	speed := of.calls.speed(SpeedSpan)
	if mean.calls > 0 {
		speed *= 1 - float64(mean.throttled)/float64(mean.calls)
	}
	for k, draw := range r.draws(l, &mean) {
		if limit := &l.View.Limits[k]; limit.Known() && limit.Refill > 0 {
			used[k] = speed * draw / limit.Refill
		}
	}
	return used
}
