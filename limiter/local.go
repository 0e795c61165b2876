package limiter

import (
	"math"
	"time"
)

// Numbers of the local window that are choices. A server of one's own (vLLM,
// llama.cpp, Ollama) queues instead of refusing, so latency is the only sign of
// too much, and a window the only thing to turn.
const (
	localStart  = 16 // calls in flight to begin with: what one GPU batches without a thought
	localMost   = 1 << 16
	localGrow   = 1.5 // while the server has never been near its target, at least
	localLeap   = 3   // at most: where the server refuses beyond some number, the first to be refused are twice that number
	localCreep  = 0.04
	localCut    = 0.9 // when the 90th percentile is over the target
	localFault  = 0.7 // when a call timed out, or the server said that it is too busy
	localEasy   = 0.6 // share of the target up to which growth is fast
	localUsed   = 0.8 // share of the window that must have been in use, or growth proves nothing
	localRest   = 10 * time.Second
	localSample = 10
	localBins   = 17
	localFine   = 4 // shares are this much finer than paces, whose bins they use

	// DefaultLocalTarget is the latency to keep under where nobody says: longer than a long
	// answer takes on hardware that is fit for its model.
	DefaultLocalTarget = time.Minute
)

// LocalTarget is the latency to keep under where nobody says: DefaultLocalTarget, or half of
// what a call may take if that is less. 0: it may take any time.
func LocalTarget(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return DefaultLocalTarget
	}
	return min(DefaultLocalTarget, timeout/2)
}

// LocalWindow finds how many calls a server of one's own takes at once: it grows
// while the 90th percentile of latency is under a target and the window is used,
// and shrinks when it is not (additive increase, multiplicative decrease). The
// zero value is ready, with the default target.
type LocalWindow struct {
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

// Size is how many calls may be in flight.
func (w *LocalWindow) Size() int {
	if w.size == 0 {
		return localStart
	}
	return int(w.size)
}

// Sent notes a call that leaves.
func (w *LocalWindow) Sent() {
	w.inFlight++
	w.peak = max(w.peak, w.inFlight)
}

// Ended notes a call that ended, however it did.
func (w *LocalWindow) Ended() { w.inFlight = max(0, w.inFlight-1) }

func (w *LocalWindow) warm() uint64 { return uint64(w.Target) + uint64(w.answers) }

// Answered judges, once enough calls were answered.
func (w *LocalWindow) Answered(latency time.Duration) {
	share := float64(latency) / float64(orElseDuration(w.Target, DefaultLocalTarget))
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

// rank is how many answers lie at or above the 90th percentile, but for itself.
func (w *LocalWindow) rank() int32 { return w.answers - 1 - w.answers*9/10 }

// share is the 90th percentile as a share of the target, not less than it is, as far as
// growth asks.
func (w *LocalWindow) share() float64 {
	bin, above := localBins-1, int32(w.shares[localBins-1])
	for ; above <= w.rank(); above += int32(w.shares[bin]) {
		bin--
	}
	return paceOf(bin+1) / localFine
}

func (w *LocalWindow) judge() {
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
		size += max(1, localCreep*size)
	default:
		size *= leap(w.share())
	}
	w.size = min(localMost, max(1, size))
}

// leap is how many times as many calls may be in flight, where latency is that share
// of the target. Of a server that takes one call at a time, n times as many take n
// times as long, and of every other less: what leaves even that one under the easy
// share is no risk. Calls that began together are judged by the first half to end, which has
// waited half as long as the last. The rest of the 2.2 covers answers from before a leap.
func leap(share float64) float64 {
	return min(localLeap, max(localGrow, localEasy/2.2/share))
}

// Faulted shrinks the window for a timeout or an overload, once per ten seconds:
// one bad moment of the server ends many calls.
func (w *LocalWindow) Faulted(now time.Time) {
	if !w.cutAt.IsZero() && now.Sub(w.cutAt) < localRest {
		return
	}
	w.cutAt, w.slow = now, true
	w.size = max(1, float64(w.Size())*localFault)
}
