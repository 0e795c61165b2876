package serve

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/internal/queue"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// paceLanes is the number of busiest lanes that are looked at for the pace of a pool.
const paceLanes = 256

// paceOf returns the pace at which calls may leave on some lanes together. Nothing is known of a lane that no call
// has used yet.
func (s *Server) paceOf(lanes ...string) queue.Pace {
	st, err := s.cfg.Shared.Status(context.Background(), paceLanes) // waits for one pass of the coordinator at most
	if err != nil {
		return queue.Pace{}
	}
	return sumPaces(st.Lanes, lanes, st.At)
}

// sumPaces adds up the paces of the named lanes. A pool stops when all its lanes have; it rests until the first may
// call again.
func sumPaces(statuses []batch.LaneStatus, names []string, now time.Time) (pace queue.Pace) {
	var cause error
	stopped, resting := 0, 0
	for _, l := range statuses {
		switch {
		case !slices.Contains(names, l.Name):
			continue
		case l.Phase == machine.Stopped:
			stopped, cause = stopped+1, l.Cause
			continue
		}
		if from := restsUntil(&l, now); !from.IsZero() {
			if resting++; resting == 1 || from.Before(pace.From) {
				pace.From = from
			}
		}
		pace.Rate += rateOf(&l)
		pace.Searched = pace.Searched || l.View.Search > 0
		switch l.View.Binds.By {
		case limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
			pace.ByTokens = true
		}
	}
	if stopped == len(names) {
		pace.Stopped = cause
	}
	if stopped+resting < len(names) {
		pace.From = time.Time{}
	}
	return pace
}

// restsUntil returns the moment before which nothing leaves on the lane; zero: something may.
func restsUntil(l *batch.LaneStatus, now time.Time) (at time.Time) {
	if l.Phase == machine.Cooling {
		at = l.Until
	}
	if l.View.Hold.After(at) {
		at = l.View.Hold
	}
	if !at.After(now) {
		at = time.Time{}
	}
	return at
}

// rateOf returns the calls per second of a lane; 0: it is not known. Where only the number of calls in flight is limited,
// that follows from how long they take.
func rateOf(l *batch.LaneStatus) float64 {
	rate := l.View.Rate
	if l.Window > 0 && l.Latency > 0 {
		rate = min(rate, float64(l.Window)/l.Latency.Seconds())
	}
	if math.IsInf(rate, 1) || math.IsNaN(rate) {
		return 0
	}
	return rate
}
