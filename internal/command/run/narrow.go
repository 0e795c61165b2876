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
	// knownLatency is the number of calls after which the latency of a lane is known.
	knownLatency = 20
	// narrow multiplies the window of a lane to get the number of calls from which a notice is worth
	// its while: the latency moves by a tenth or two by itself.
	narrow = 1.25
)

// sayNarrow says once of each lane of the file that its window holds it back: its limits allow more
// calls than can be in flight, as each takes so long.
func (d *display) sayNarrow(s *batch.Status) {
	if d.Flags.Fleet == nil {
		return
	}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		of := d.Account.LaneNamed(l.Name)
		if of == nil || d.narrow[l.Name] || !isNarrow(l, of.Spec.Window()) {
			continue
		}
		if d.narrow == nil {
			d.narrow = map[string]bool{}
		}
		d.narrow[l.Name] = true
		use := useful(l)
		d.console.Notice(event.Narrow, fmt.Sprintf("lane %s could use about %d calls at once: concurrency: %[2]d in %s (now %d)", l.Name, use, d.Flags.Config, l.Window))
	}
}

// isNarrow reports whether the window that the user has set for a lane is full, and too small for
// the rate that its limits allow. A smaller window is the law's, which knows better.
func isNarrow(l *batch.LaneStatus, window int) bool {
	return l.Window == window && l.InFlight >= window && l.Counters.Settled >= knownLatency && isLimited(l) &&
		float64(useful(l)) >= narrow*float64(window)
}

// isLimited reports whether it is known what a lane's limits allow. What a server of one's own lets
// in depends on how many calls it has, so there only the word of the user or of the server counts.
func isLimited(l *batch.LaneStatus) bool {
	isKnown := func(b limiter.LimitView) bool { return b.Source == limiter.Configured || b.Source == limiter.Seen }
	return !math.IsInf(l.Rate, 1) && (!l.Local || slices.ContainsFunc(l.View.Limits[:], isKnown))
}

// useful returns how many calls in flight a lane could use, in two digits. Its rate must be finite.
func useful(l *batch.LaneStatus) int {
	n := max(1, l.Rate*l.P95.Seconds())
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-1))
	return int(math.Round(n/unit) * unit)
}
