package limiter

import (
	"math"
	"slices"
	"time"
)

// Numbers of the local window that are choices. A server of one's own (vLLM,
// llama.cpp, Ollama) queues instead of refusing, so latency is the only sign of
// too much, and a window the only thing to turn.
const (
	localStart  = 16 // calls in flight to begin with: what one GPU batches without a thought
	localMost   = 1 << 16
	localGrow   = 1.5 // while the server has never been near its target, at least
	localLeap   = 16  // at most
	localCreep  = 0.04
	localCut    = 0.9 // when the 90th percentile is over the target
	localFault  = 0.7 // when a call timed out, or the server said that it is too busy
	localEasy   = 0.6 // share of the target up to which growth is fast
	localUsed   = 0.8 // share of the window that must have been in use, or growth proves nothing
	localRest   = 10 * time.Second
	localSample = 10

	// DefaultLocalTarget is the latency to keep under where nobody says: half of the
	// usual attempt timeout.
	DefaultLocalTarget = time.Minute
)

// LocalWindow finds how many calls a server of one's own takes at once: it grows
// while the 90th percentile of latency is under a target and the window is used,
// and shrinks when it is not (additive increase, multiplicative decrease). The
// zero value is ready, with the default target; it is not to be copied once it is used.
type LocalWindow struct {
	Target   time.Duration // 0: DefaultLocalTarget
	size     float64
	slow     bool // the target was once near: growth is by small steps from then on
	inFlight int
	peak     int // most in flight since the last judgement
	latency  []time.Duration
	few      [localSample]time.Duration // the room of latency while it has enough
	cutAt    time.Time
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

func (w *LocalWindow) warm() uint64 {
	return uint64(w.Target) + uint64(len(w.latency)) + uint64(w.few[0]+w.few[localSample-1])
}

// Answered judges, once enough calls were answered.
func (w *LocalWindow) Answered(latency time.Duration) {
	if w.latency == nil {
		w.latency = w.few[:0]
	}
	w.latency = append(w.latency, latency)
	if len(w.latency) < max(localSample, w.Size()/2) {
		return
	}
	slices.Sort(w.latency)
	w.judge(w.latency[len(w.latency)*9/10])
	w.latency, w.peak = w.latency[:0], w.inFlight
}

func (w *LocalWindow) judge(p90 time.Duration) {
	target := w.Target
	if target <= 0 {
		target = DefaultLocalTarget
	}
	size := w.size
	if size == 0 {
		size = localStart
	}
	w.slow = w.slow || float64(p90) > localEasy*float64(target)
	switch {
	case p90 > target:
		size *= localCut
	case float64(w.peak) < localUsed*math.Floor(size):
	case w.slow:
		size += max(1, localCreep*size)
	default:
		size *= leap(float64(p90) / float64(target))
	}
	w.size = min(localMost, max(1, size))
}

// leap is how many times as many calls may be in flight, where latency is that share
// of the target. Of a server that takes one call at a time, n times as many take n
// times as long, and of every other less: what leaves even that one under the easy
// share is no risk. The half is for calls that began together: the first half to end,
// which is judged, has waited half as long as the last.
func leap(share float64) float64 {
	return min(localLeap, max(localGrow, localEasy/2/share))
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
