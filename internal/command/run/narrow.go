package run

import (
	"fmt"
	"math"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/limiter"
)

const (
	// minLatencySamples is the number of calls after which the latency of a lane is known.
	minLatencySamples = 20
	// narrowFactor multiplies the window of a lane to get the number of calls from which a notice is worth
	// its while: the latency moves by a tenth or two by itself.
	narrowFactor = 1.25
)

// suggestWindows shows a notice, once for each lane of the file, if the lane's window holds it back. Its
// limits then allow more calls than can be in flight.
func (d *display) suggestWindows(status *batch.Status) {
	if d.Flags.Fleet == nil {
		return
	}
	for i := range status.Lanes {
		lane := &status.Lanes[i]
		fleetLane := d.Account.LaneNamed(lane.Name)
		if fleetLane == nil || d.narrowReported[lane.Name] || !isNarrow(lane, fleetLane.Spec.Window()) {
			continue
		}
		if d.narrowReported == nil {
			d.narrowReported = map[string]bool{}
		}
		d.narrowReported[lane.Name] = true
		calls := usefulWindow(lane)
		d.console.Notice(event.Narrow, fmt.Sprintf("lane %s could use about %d calls at once: concurrency: %[2]d in %s (now %d)", lane.Name, calls, d.Flags.Config, lane.Window))
	}
}

// isNarrow reports whether the window that the user has set for a lane is full, and too small for
// the rate that its limits allow. A smaller window is the law's, which knows better.
func isNarrow(l *batch.LaneStatus, window int) bool {
	return l.Window == window && l.InFlight >= window && l.Counters.Settled >= minLatencySamples && isLimited(l) &&
		float64(usefulWindow(l)) >= narrowFactor*float64(window)
}

// isLimited reports whether it is known what a lane's limits allow. What a server of one's own lets
// in depends on how many calls it has, so there only the word of the user or of the server counts.
func isLimited(l *batch.LaneStatus) bool {
	isKnown := func(b limiter.LimitView) bool { return b.Source == limiter.Configured || b.Source == limiter.Seen }
	return !math.IsInf(l.Rate, 1) && (!l.Local || slices.ContainsFunc(l.View.Limits[:], isKnown))
}

// usefulWindow returns how many calls in flight a lane could use, in two digits. Its rate must be finite.
func usefulWindow(l *batch.LaneStatus) int {
	n := max(1, l.Rate*l.P95.Seconds())
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-1))
	return int(math.Round(n/unit) * unit)
}
