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

// usable is the share of a limit at which calls are let go. The law keeps a little back of a
// limit that it has learned, or read in headers. A told limit is the user's word, and is used
// in full.
const usable = 0.98

// limitBounds are the bounds of the dimensions, in the order of a [limiter.View]'s Limits.
var limitBounds = [limiter.Dimensions]limiter.Bound{limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens}

// A capacity is the rate that one bound lets through, in calls a second. Each of them answers an
// item if it goes well.
type capacity struct {
	by   limiter.Bound
	rate float64
}

// capacities returns the known capacities of a lane: those of its limits, and that of its window at
// the mean latency in seconds. draws holds what an item draws on each limit.
func capacities(l *batch.LaneStatus, draws [limiter.Dimensions]float64, latency float64) (known []capacity) {
	for k := range l.View.Limits {
		if rate := limitCapacity(&l.View.Limits[k], draws[k]); rate > 0 {
			known = append(known, capacity{limitBounds[k], rate})
		}
	}
	if l.Window > 0 && latency > 0 {
		known = append(known, capacity{limiter.BoundWindow, float64(l.Window) / latency})
	}
	return known
}

// limitCapacity returns the items a second that one limit lets through; 0: unknown.
func limitCapacity(l *limiter.LimitView, draw float64) float64 {
	if !l.Known() || !(draw > 0) {
		return 0
	}
	share := usable
	if l.Source == limiter.Configured {
		share = 1
	}
	others := l.Others
	if l.Capacity > 0 && l.Level > 0.95*l.Capacity-1 { // it is full, but for what providers round off: what seems to be gone was not drawn
		others = 0
	}
	return max(0, (share*l.Refill-others)/draw)
}

// drawPerItem returns what an item draws on each limit: the law's count for the items that wait. If
// no item waits, it is the mean of recent calls.
func (r *Recorder) drawPerItem(l *batch.LaneStatus, of *figures) [limiter.Dimensions]float64 {
	c := l.Draw
	if c == (limiter.Cost{}) {
		c.Requests = 1
		if n := float64(of.calls - of.throttled); n > 0 {
			c.Input, c.Output = float64(of.used.InputTokens)/n, float64(of.used.OutputTokens)/n
		}
	}
	return [limiter.Dimensions]float64{c.Requests, c.Tokens(), c.Input, c.Output}
}

// lowestRate returns the lowest rate of the capacities; +Inf: none is known.
func lowestRate(of []capacity) float64 {
	rate := math.Inf(1)
	for _, c := range of {
		rate = min(rate, c.rate)
	}
	return rate
}

// allowedRate returns the items a second that all bounds together let through; +Inf: unknown. It is
// unknown while one of several lanes searches for its limit: the windows of new lanes would let
// through a hundred times as much.
func (r *Recorder) allowedRate(s *batch.Status) float64 {
	figures := r.run.mean()
	run := math.Inf(1)
	if occupied := figures.meanOccupied(); occupied > 0 && s.Run.Concurrency > 0 {
		run = float64(s.Run.Concurrency) / occupied
	}
	if len(s.Lanes) == 0 || s.Known > len(s.Lanes) {
		return run
	}
	lanes, anyWaits := 0.0, slices.ContainsFunc(s.Lanes, func(l batch.LaneStatus) bool { return l.Draw != (limiter.Cost{}) })
	for k := range s.Lanes {
		l := &s.Lanes[k]
		if l.Phase == machine.Stopped {
			continue
		}
		if len(s.Lanes) > 1 && isSearching(l) {
			return math.Inf(1)
		}
		figures := r.lane(r.names.slot(l.Name))
		mean := figures.mean()
		rate := lowestRate(capacities(l, r.drawPerItem(l, &mean), mean.meanTook()))
		if anyWaits && l.Draw == (limiter.Cost{}) { // while items wait for others, it needs no more than it uses
			rate = min(rate, figures.items.speed(SpeedSpan))
		}
		lanes += rate
	}
	return min(run, lanes)
}

// isSearching reports whether the lane has a pace, although nothing of its limits is known.
func isSearching(l *batch.LaneStatus) bool {
	known := slices.ContainsFunc(l.View.Limits[:], func(v limiter.LimitView) bool { return v.Known() })
	return !known && !math.IsInf(l.Rate, 1)
}

// addNextBounds adds to h the bound that would hold the run back if the present one were gone, and
// the one after that. It judges by the lane that matters.
func (r *Recorder) addNextBounds(h *Bottleneck, s *batch.Status, l *batch.LaneStatus) {
	switch h.By {
	case limiter.BoundNone, limiter.BoundPaused, limiter.BoundDraining, limiter.BoundStopped, limiter.BoundTail, limiter.BoundBudget:
		return
	}
	span := min(max(s.At.Sub(h.Since), SpeedSpan), LatencySpan)
	rivals, known := r.nextBounds(h, s, l, span)
	rivals = slices.DeleteFunc(rivals, func(c capacity) bool { return c.by == h.By })
	slices.SortStableFunc(rivals, func(a, b capacity) int { return cmp.Compare(a.rate, b.rate) })
	if len(rivals) == 0 {
		return
	}
	if h.Next = rivals[0].by; known {
		h.Factor = max(1, rivals[0].rate)
	}
	if len(rivals) > 1 {
		h.Then = rivals[1].by
	}
}

// nextBounds returns the bounds that may bind next, each with its factor over the present speed.
// The lane's bounds are compared with the lane's speed, and the run's with the run's. Without a
// speed it returns plain capacities, and reports that no factor is known.
func (r *Recorder) nextBounds(h *Bottleneck, s *batch.Status, l *batch.LaneStatus, span time.Duration) (rivals []capacity, known bool) {
	mean := r.run.mean()
	place := mean.meanOccupied()
	if h.By == limiter.BoundOutput {
		place = mean.meanTook() // without the time at the gate
	}
	run, lane := r.run.calls.speed(span), 0.0
	if l != nil {
		of := r.lane(r.names.slot(l.Name))
		mean, lane = of.mean(), of.calls.speed(span)
		rivals = capacities(l, r.drawPerItem(l, &mean), mean.meanTook())
	}
	known = run > 0 && (lane > 0 || l == nil)
	if !known {
		run, lane = 1, 1
	}
	for k := range rivals {
		rivals[k].rate /= lane
	}
	queues := l != nil && l.Local
	if queues { // it is not known whether it would take more at once
		rivals = slices.DeleteFunc(rivals, func(c capacity) bool { return c.by == limiter.BoundWindow })
	}
	// The lane's window keeps calls out for the latency's sake: with more calls in, each would take
	// longer. So nobody knows when the run's places would be too few.
	if place > 0 && s.Run.Concurrency > 0 && !(queues && h.By == limiter.BoundWindow) {
		rivals = append(rivals, capacity{limiter.BoundConcurrency, float64(s.Run.Concurrency) / place / run})
	}
	return rivals, known
}
