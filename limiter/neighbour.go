package limiter

import "math"

// Numbers about neighbours that are choices.
const (
	cleanCalls  = 60    // let in one after the other: one in ten refused by chance brings that about once in 550 tries
	cleanMemory = 120.0 // seconds for which that counts
	cleanMost   = 1.1   // times the rate that was clean may be believed, and a neighbour still be blamed
	deepest     = 10.0  // seconds of refill: a deeper bucket outlasts a neighbour's burst by itself
	pauseLet    = 4     // calls let in between two refusals at most, for the second to be his without an alarm
	pauseFirst  = 0.5   // seconds
	pauseGrowth = 1.6
	pauseMost   = 30.0
	peakMemory  = 180.0 // seconds
	peakShare   = 0.8   // of the peak: less is a dip
	peakQuiet   = 2.0   // seconds without a refusal, an estimate or a hold, before a rate is a peak
	peakNear    = 0.95  // of the old peak and more is a peak again
)

// A memory is a rate and when it was true; the zero memory is none.
type memory struct {
	rate, at float64
	held     bool
}

func (m *memory) note(rate, at float64) { *m = memory{rate, at, true} }

// within reports whether it is there and not older than that.
func (m *memory) within(t, seconds float64) bool { return m.held && t-m.at <= seconds }

// neighbour is somebody else who draws on the same limit, as the explanation of
// refusals: what was let in a while ago, sixty calls in a row, is not over the limit
// now. So the lane pauses, and its rate stays.
type neighbour struct {
	clean  memory  // the rate at which so many calls were let in in a row
	peak   memory  // the highest rate that was paced by without a refusal
	pauses int32   // in a row
	calls  int32   // let in one after the other
	from   float64 // when the first of these left
}

// letIn takes a call that left at t and was let in.
func (n *neighbour) letIn(t float64) {
	if n.calls == 0 {
		n.from = t
	}
	if n.calls++; n.calls == cleanCalls {
		n.clean.note(cleanCalls/max(t-n.from, 1e-3), t)
		n.pauses, n.calls = 0, 0
	}
}

// interrupted takes a refusal, whoever is to blame.
func (n *neighbour) interrupted() { n.calls = 0 }

// toBlame reports whether a refusal at that rate, of a bucket that holds so many
// seconds of it, is a neighbour's doing.
func (n *neighbour) toBlame(t, rate, depth float64) bool {
	return n.clean.within(t, cleanMemory) && rate < cleanMost*n.clean.rate && depth < deepest
}

// pause is how long to leave him alone; let is how many calls were let in since the
// refusal before.
func (n *neighbour) pause(let float64) float64 {
	if let > 1 {
		n.pauses = 0
	}
	n.pauses++
	return min(pauseMost, pauseFirst*math.Pow(pauseGrowth, float64(n.pauses-1)))
}

// paced notes a rate that calls were paced by without a refusal.
func (n *neighbour) paced(t, rate float64) {
	if !n.peak.within(t, peakMemory) || rate > peakNear*n.peak.rate {
		n.peak.note(rate, t)
	}
}

// dip reports whether the rate is one that was learned while a neighbour called: not
// long ago it was much higher.
func (n *neighbour) dip(t, rate, depth float64) bool {
	return n.peak.within(t, peakMemory) && rate < peakShare*n.peak.rate && depth < deepest
}
