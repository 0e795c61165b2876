package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/internal/window"
)

// Numbers of the cap that are choices.
const (
	capFound      = 3.0    // nats by which company must explain refusals better than
	capFoundPace  = 1.5    // this many times what the pace explains
	capKept       = 1.0    // likewise, to be kept: a cap that is dropped at each odd split would
	capKeptPace   = 0.7    // have a rate learned where there is none
	capRow        = 4      // refusals in a row that a cap may explain: whenever a call ends, one is let in
	capEdge       = 0.9    // of the cap is at its edge: hops make it soft
	capCut        = 0.1    // by which a flight that meets the cap lowers it
	capStep       = 0.0005 // by which a call that was let in at the edge raises the cap
	capMost       = 0.1    // by which it does at most
	capAhead      = 0.05   // beyond one more than was let in at once it rises by so much: news of a refusal takes a while
	capApart      = 0.75   // of the usual gap passes before a call that is one more than was ever in flight: in a burst its refusal would not show a cap
	guessRefusals = 2      // refusals of one more make a guess believed: chance seldom strikes these two and no other
	capSure       = 50     // calls let in at the edge, per place, that make one more surely worth a try; going from one place to two doubles the speed
)

// crowd explains refusals by a cap on calls in flight. Two tables compete: by the number of
// others in flight, and by pace. The cap is to blame where company explains refusals well, and
// better than the pace does.
type crowd struct {
	byInFlight, byPace table
	cap                *callCap // nil: none is believed
}

// A callCap is the belief that the server lets in at most so many calls at once.
type callCap struct {
	most        float64
	letInAtEdge float64 // calls let in at the edge since the latest refusal there
	mostSeen    float64 // most calls that were let in at once
	from        uint64  // the number of the first call that left since it was lowered
	exact       bool    // it was guessed of a refusal that came at once
	guess       *guess  // nil: it is believed
}

// A guess is a cap on trial: the first refusal of a search is taken for a cap's. It is right if
// as many calls as were in flight then are let in, and one more is refused.
//
//	refused beyond n ─▶ n in flight ─▶ one of them was answered ─▶ n + 1 ─▶ refused, twice: believed
//	                              └─▶ refused: wrong                   └─▶ answered: wrong
type guess struct {
	from       uint64  // the number of the first call that left under it
	pace       float64 // of the refused call
	tryingMore bool    // one more is let go
	refusals   int     // times that one more was refused
}

func (c *crowd) book(t *limiter.Ticket, refused bool) {
	c.byInFlight.book(crowdBin(int(t.Beside)), refused)
	c.byPace.book(paceBin(float64(t.Pace)), refused)
}

func (c *crowd) correct(t *limiter.Ticket) {
	c.byInFlight.correct(crowdBin(int(t.Beside)))
	c.byPace.correct(paceBin(float64(t.Pace)))
}

// guessCap guesses a cap: it takes a refused call for the first beyond it. next is the number of
// the next call to leave.
func (c *crowd) guessCap(ticket *limiter.Ticket, next uint64) {
	c.cap = &callCap{most: float64(ticket.Beside), mostSeen: float64(ticket.Beside), exact: true, guess: &guess{from: next, pace: float64(ticket.Pace)}}
}

// refutesGuess reports whether the answer to a call shows that a guessed cap is wrong.
func (c *crowd) refutesGuess(ticket *limiter.Ticket) (wrong bool) {
	if c.cap == nil || c.cap.guess == nil || ticket.Number < c.cap.guess.from {
		return false
	}
	c.cap.guess.tryingMore = true
	return float64(ticket.Beside) >= c.cap.most
}

// holds reports whether a guessed cap explains the refusal of a call, and adjusts the guess. next
// is the number of the next call to leave.
func (c *callCap) holds(ticket *limiter.Ticket, next uint64) bool {
	inFlight := float64(ticket.Beside)
	if ticket.Number >= c.guess.from {
		if inFlight < c.most || !c.guess.tryingMore {
			return false
		}
		c.guess.tryingMore = false
		if c.guess.refusals++; c.guess.refusals == guessRefusals {
			c.guess = nil
		}
	}
	c.most = max(1, min(c.most, inFlight))
	c.mostSeen, c.from = c.most, next
	return true
}

// explains reports whether a cap is to blame for a refusal that was booked. It assumes a cap once the calls in flight
// explain refusals better than the pace does, and drops it when they no longer do.
//
// row counts the latest refusals in a row. share is the refused share of the latest calls. usual is
// the share that chance may be blamed for.
func (c *crowd) explains(ticket *limiter.Ticket, next uint64, row int, share, usual float64) bool {
	crowdGain, paceGain := c.byInFlight.gain(crowdBin(int(ticket.Beside))), c.byPace.gain(paceBin(float64(ticket.Pace)))
	if c.cap == nil {
		isChance := share <= max(0.01, min(1.6*usual, 0.12+0.88*usual))
		if ticket.Beside == 0 || crowdGain <= capFound+capFoundPace*paceGain || isChance {
			return false
		}
		c.cap = &callCap{most: float64(ticket.Beside), mostSeen: float64(ticket.Beside), from: next}
		return true
	}
	if row > capRow || crowdGain <= capKept+capKeptPace*paceGain {
		c.cap = nil
		return false
	}
	return c.cap.refused(ticket, next)
}

// refused reports whether the cap explains the refusal of a call, and lowers the cap if so. Calls
// that left before the cap was lowered were too many for the higher one. Together they lower it
// once by capCut, or to the fewest calls in flight that one of them met.
func (c *callCap) refused(ticket *limiter.Ticket, next uint64) bool {
	inFlight := float64(ticket.Beside)
	if inFlight+1 <= capEdge*c.most {
		return false
	}
	lowered := min(c.most, inFlight)
	if leftSinceLowered := ticket.Number >= c.from; leftSinceLowered {
		lowered = min(lowered, c.most*math.Exp(-capCut))
		c.from = next
	}
	c.most = max(1, lowered)
	c.letInAtEdge, c.mostSeen = 0, c.most
	return true
}

// raise counts a call that was let in although it took the last place. The cap may then be a little
// higher, and more so the more such calls there are.
func (c *callCap) raise(gap, inFlight float64) {
	c.letInAtEdge++
	sure := min(1, c.letInAtEdge/min(4*min(100, max(5, 10/gap)), capSure*c.most))
	c.mostSeen = max(c.mostSeen, inFlight+1)
	more := c.most * (1 + min(capMost, capStep+math.Ln2/doubling*gap*sure*sure))
	c.most = max(c.most, min(more, 1+(1+capAhead)*(inFlight+1)))
}

// places returns the number of calls that may be in flight.
func (c *callCap) places() int {
	if c.guess != nil && c.guess.tryingMore {
		return int(c.most) + 1
	}
	return max(1, int(c.most))
}

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
	Target     time.Duration // 0: DefaultLocalTarget
	size       float64
	nearTarget bool // the target was once near: growth is by small steps from then on
	inFlight   int
	cutAt      time.Time

	// Since the last judgement.
	peak     int               // most in flight
	answers  int32             // of which took
	overEasy int32             // more than the easy share of the target,
	over     int32             // more than the target,
	shares   [localBins]uint16 // and which share of it, in quarters of an octave from a sixty-fourth to a quarter and more
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
		w.size, w.nearTarget = size, true
	}
}

// Answered counts the latency of an answer, and adjusts the window once there are enough of them.
func (w *localWindow) Answered(latency time.Duration) {
	share := float64(latency) / float64(measure.OrElseDuration(w.Target, limiter.DefaultLocalTarget))
	w.answers++
	w.shares[min(localBins-1, paceBin(localFine*share))]++
	if share > localEasy {
		w.overEasy++
	}
	if share > 1 {
		w.over++
	}
	if int(w.answers) >= max(localSample, w.Size()/2) {
		w.judge()
		w.answers, w.overEasy, w.over, w.peak, w.shares = 0, 0, 0, w.inFlight, [localBins]uint16{}
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
	return paceOfBin(bin+1) / localFine
}

// judge sets the size of the window after a round of answers. It shrinks if too many were over the
// target, and grows slightly once the target was near. Otherwise it grows as far as the latency
// allows.
func (w *localWindow) judge() {
	size := w.size
	if size == 0 {
		size = localStart
	}
	w.nearTarget = w.nearTarget || w.overEasy > w.rank()
	switch {
	case w.over > w.rank():
		size *= localCut
	case float64(w.peak) < localUsed*math.Floor(size): // it was not full: the round says nothing of a larger one
	case w.nearTarget:
		size += max(1, window.Creep*size)
	default:
		size *= growthFactor(w.share())
	}
	w.size = min(window.Most, max(1, size))
}

// growthFactor returns by how much the calls in flight may grow where latency is that share of the
// target. With n times as many calls, a server that takes one at a time takes n times as long, and
// every other server less. A factor that keeps even that one under the easy share is no risk. Calls
// that began together are judged by the first half to end, which has waited half as long as the
// last. The rest of the 2.2 covers answers from before the growth.
func growthFactor(share float64) float64 {
	return min(localLeap, max(localGrow, localEasy/2.2/share))
}

// Faulted shrinks the window for a timeout or an overload, once per ten seconds:
// one bad moment of the server ends many calls.
func (w *localWindow) Faulted(now time.Time) {
	if !w.cutAt.IsZero() && now.Sub(w.cutAt) < window.Rest {
		return
	}
	w.cutAt, w.nearTarget = now, true
	w.size = max(1, float64(w.Size())*window.Fault)
}
