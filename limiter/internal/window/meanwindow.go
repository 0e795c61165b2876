package window

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Numbers of the mean window that are choices. Halving or doubling one of them moves throughput
// by a few percent, and the mean stays within its bound.
const (
	meanStart  = 4   // calls in flight to begin with: if the server takes one at a time, few have waited long
	meanDouble = 2.0 // times as many as were in flight, at most, at one judgement
	meanBold   = 1.5 // times as many as are safe, while the mean has never been over the target
	meanUsed   = 0.8 // share of the window that must have been in use, or more of it proves nothing
	meanGrowBy = 8   // answers, and a windowful, that allow for more
	meanCutBy  = 32  // likewise, that ask for less: of eight the mean is often over by chance
	meanWaits  = 32  // judgements at most before a little more is tried again
)

// Numbers that every window on calls in flight uses.
const (
	Most  = 1 << 16
	Creep = 0.04 // of the size is added where nothing speaks for more
	Fault = 0.7  // of it is left when a call timed out, or the server said that it is too busy
	Rest  = 10 * time.Second
)

// A Mean finds how many calls may be in flight for the mean latency to stay at a target. It
// works alongside any other pacing of a server's calls, hosted or not. Fewer calls in flight
// empty a queue that has built up, while a falling rate leaves it as long as it is.
//
// It rests on Little's law. If n calls in flight take the time L, m times as many take at most
// m·L. They take that long if the server takes one call at a time, and less with every other
// server. So n·target/L are safe, and if L is over the target, the window shrinks to that. A call
// reports how many were in flight when it left, so that answers from before a change do not
// count against it. The short calls end first, so the window grows only as far as the answers
// per second bear it out.
//
// The mean over all calls stays within [limiter.MeanTolerance] times the target; single calls
// may take longer. In a local server's window the 90th percentile stays under the target. If a
// single call takes longer than the target, one call is in flight at a time, and no call
// starves. The same happens if latency grows for another reason than load, such as longer
// answers: a target is for users who know how long their calls take.
//
// The zero value has no target, and no bound.
type Mean struct {
	Target time.Duration // 0 or less: there is none
	size   float64       // 0: meanStart

	// Of the answers since the latest judgement.
	since    time.Time // that judgement; before the first one, when the first call left
	answers  int
	inFlight float64 // calls in flight when each of them left, itself included: the sum
	peak     int     // the most that were
	latency  float64 // seconds: the sum

	mean  float64 // latency at the latest judgement, seconds; 0: there was none
	over  bool    // it was once over the target: from then on growth is by what is safe
	tried float64 // the size before more was tried; 0: nothing is tried
	calm  int     // judgements one after the other that added no whole call
	waits int     // of these, before more is tried
	cutAt time.Time
}

// Watch returns the window of a law that is to keep a target; nil: there is none.
func Watch(target time.Duration) *Mean {
	if target <= 0 {
		return nil
	}
	return &Mean{Target: target}
}

// Size returns the number of calls that may be in flight, at least 1; 0: there is no target, so
// no bound.
func (w *Mean) Size() int {
	if w.Target <= 0 {
		return 0
	}
	return int(w.currentSize())
}

func (w *Mean) currentSize() float64 {
	if w.size == 0 {
		return meanStart
	}
	return w.size
}

// Answered adds the latency of a call that was answered now, and had left with others in flight.
// Once there are enough answers, it changes the window. It grows sooner than it shrinks, as chance
// must not take away capacity that a server has.
func (w *Mean) Answered(now time.Time, latency time.Duration, others int) {
	if w.Target <= 0 {
		return
	}
	if w.since.IsZero() {
		w.since = now.Add(-latency)
	}
	w.answers++
	w.inFlight += float64(others + 1)
	w.peak = max(w.peak, others+1)
	w.latency += max(0, latency).Seconds()
	switch n, target, cutBy := float64(w.answers), w.Target.Seconds(), w.cutBy(); {
	case w.latency <= n*target && n >= max(meanGrowBy, w.currentSize()):
		w.grow(now)
	case w.latency > cutBy*target, n >= cutBy: // the first: whatever the others take, the mean is over
		w.shrink()
	default:
		return
	}
	w.since, w.answers, w.inFlight, w.peak, w.latency = now, 0, 0, 0, 0
}

// cutBy returns the number of answers that it takes to shrink the window; fewer while a larger
// size is on trial.
func (w *Mean) cutBy() float64 {
	if w.tried > 0 {
		return max(meanGrowBy, w.currentSize())
	}
	return max(meanCutBy, w.currentSize())
}

// safe judges the answers, and returns the number of calls that may be in flight by Little's law.
func (w *Mean) safe() float64 {
	n := float64(w.answers)
	w.mean = w.latency / n
	return w.inFlight / n / max(1/meanDouble, w.mean/w.Target.Seconds())
}

// shrink lowers the window to what the answers allow. If an attempt to grow caused this, the window
// returns to the size before, and the next attempt waits longer.
func (w *Mean) shrink() {
	size := min(w.currentSize(), w.safe())
	if w.tried > 0 {
		size = w.tried
		w.waits = min(meanWaits, 2*w.waits+1)
	}
	w.size, w.over, w.calm, w.tried = max(1, size), true, 0, 0
}

// grow enlarges the window after answers that kept the target, and never shrinks it. Until the mean
// was once over the target, a window in use may go to twice its peak. From then on Little's law and
// the answers per second both bound it, except for what try adds.
func (w *Mean) grow(now time.Time) {
	size, more := w.currentSize(), w.safe()
	borne := w.Target.Seconds() * float64(w.answers) / max(1e-9, now.Sub(w.since).Seconds()) // by the answers per second
	used := float64(w.peak) >= meanUsed*math.Floor(size)
	if used && !w.over {
		more, borne = meanDouble*float64(w.peak), meanBold*borne
	}
	w.size, w.tried = max(size, min(more, borne)), 0
	switch {
	case math.Floor(w.size) > math.Floor(size):
		w.calm, w.waits = 0, 0
	case used:
		w.try()
	}
	w.size = min(Most, w.size)
}

// try allows a little more than the safe number, or a server with room for many might be left
// with few. The more often that was too much, the longer it waits.
func (w *Mean) try() {
	if w.calm++; w.calm > w.waits {
		w.tried = w.size
		w.size = math.Floor(w.size) + max(1, Creep*w.size)
	}
}

// Faulted shrinks the window for a call that timed out, once per ten seconds. A call without
// answer has no latency, and one bad moment of the server ends many calls.
func (w *Mean) Faulted(now time.Time) {
	if w.Target <= 0 || !w.cutAt.IsZero() && now.Sub(w.cutAt) < Rest {
		return
	}
	w.cutAt, w.over, w.tried = now, true, 0
	w.size = max(1, w.currentSize()*Fault)
}

// Recall takes up a size that was saved. It was found at a mean near the target.
func (w *Mean) Recall(size float64) {
	if size = measure.Sane(size, 1, Most); size > 0 {
		w.size, w.over = size, true
	}
}

// Pace returns the calls per second that the window allows at the mean that was seen last; +Inf
// if there was none.
func (w *Mean) Pace() float64 {
	if w.Target <= 0 || w.mean == 0 {
		return math.Inf(1)
	}
	return float64(w.Size()) / w.mean
}

// Found returns the size that was found, in parts of a call; 0: none was.
func (w *Mean) Found() float64 { return w.size }
