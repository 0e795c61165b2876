package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/internal/window"
)

// Numbers of the local window that are choices. A server of one's own (vLLM,
// llama.cpp, Ollama) queues instead of refusing, so latency is the only sign of
// too much, and a window the only thing to turn.
const (
	localStart  = 16  // calls in flight to begin with: what one GPU batches without a thought
	localGrow   = 1.5 // while the server has never been near its target, at least
	localLeap   = 3   // at most: where the server refuses beyond some number, the first to be refused are twice that number
	localCut    = 0.9 // when the 90th percentile is over the target
	localEasy   = 0.6 // share of the target up to which growth is fast
	localUsed   = 0.8 // share of the window that must have been in use, or growth proves nothing
	localSample = 10
	localBins   = 17
	localFine   = 4 // shares are this much finer than paces, whose bins they use
)

// localWindow finds how many calls a server of one's own takes at once. It grows while the 90th
// percentile of latency is under a target and the window is used. It shrinks when the
// percentile is over the target (additive increase, multiplicative decrease). The zero value is
// ready, with the default target.
type localWindow struct {
	Target   time.Duration // 0: DefaultLocalTarget
	size     float64
	slow     bool // the target was once near: growth is by small steps from then on
	inFlight int
	cutAt    time.Time

	// Since the last judgement.
	peak    int               // most in flight
	answers int32             // of which took
	hard    int32             // more than the easy share of the target,
	over    int32             // more than the target,
	shares  [localBins]uint16 // and which share of it, in quarters of an octave from a sixty-fourth to a quarter and more
}

// Size returns the number of calls that may be in flight.
func (w *localWindow) Size() int {
	if w.size == 0 {
		return localStart
	}
	return int(w.size)
}

// Sent notes a call that leaves.
func (w *localWindow) Sent() {
	w.inFlight++
	w.peak = max(w.peak, w.inFlight)
}

// Ended notes a call that ended, in whatever way.
func (w *localWindow) Ended() { w.inFlight = max(0, w.inFlight-1) }

// recall takes up a size that was saved.
func (w *localWindow) recall(size float64) {
	if size = measure.Sane(size, 1, window.Most); size > 0 {
		w.size, w.slow = size, true
	}
}

func (w *localWindow) warm() uint64 { return uint64(w.Target) + uint64(w.answers) }

// Answered judges, once enough calls were answered.
func (w *localWindow) Answered(latency time.Duration) {
	share := float64(latency) / float64(measure.OrElseDuration(w.Target, limiter.DefaultLocalTarget))
	w.answers++
	w.shares[min(localBins-1, paceBin(localFine*share))]++
	if share > localEasy {
		w.hard++
	}
	if share > 1 {
		w.over++
	}
	if int(w.answers) >= max(localSample, w.Size()/2) {
		w.judge()
		w.answers, w.hard, w.over, w.peak, w.shares = 0, 0, 0, w.inFlight, [localBins]uint16{}
	}
}

// rank returns the number of answers at or above the 90th percentile, not counting that one.
func (w *localWindow) rank() int32 { return w.answers - 1 - w.answers*9/10 }

// share returns an upper bound of the 90th percentile, as a share of the target. It is as fine as
// growth needs.
func (w *localWindow) share() float64 {
	bin, above := localBins-1, int32(w.shares[localBins-1])
	for ; above <= w.rank(); above += int32(w.shares[bin]) {
		bin--
	}
	return paceOf(bin+1) / localFine
}

func (w *localWindow) judge() {
	size := w.size
	if size == 0 {
		size = localStart
	}
	w.slow = w.slow || w.hard > w.rank()
	switch {
	case w.over > w.rank():
		size *= localCut
	case float64(w.peak) < localUsed*math.Floor(size):
	case w.slow:
		size += max(1, window.Creep*size)
	default:
		size *= leap(w.share())
	}
	w.size = min(window.Most, max(1, size))
}

// leap returns the factor by which the calls in flight may grow, where latency is that share of
// the target. With n times as many calls, a server that takes one at a time takes n times as
// long, and every other server less. A factor that keeps even that one under the easy share is
// no risk. Calls that began together are judged by the first half to end, which has waited half
// as long as the last. The rest of the 2.2 covers answers from before a leap.
func leap(share float64) float64 {
	return min(localLeap, max(localGrow, localEasy/2.2/share))
}

// Faulted shrinks the window for a timeout or an overload, once per ten seconds:
// one bad moment of the server ends many calls.
func (w *localWindow) Faulted(now time.Time) {
	if !w.cutAt.IsZero() && now.Sub(w.cutAt) < window.Rest {
		return
	}
	w.cutAt, w.slow = now, true
	w.size = max(1, float64(w.Size())*window.Fault)
}
