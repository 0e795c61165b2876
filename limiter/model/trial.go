package model

import "math"

// The trial: go slower and see. Where not enough is known about slower paces, slower is
// the cheap experiment: it costs the time of 4 to 40 calls and asks nothing of the
// server. Going faster costs refusals, and cannot tell a hundredth of overload from a
// hundredth of chance.
const (
	trialShare = 0.85 // of the pace that would explain the refusals: just under it
	trialBin   = 0.7  // of the pace of the refused call's bin: two bins lower
	trialNats  = 3.5  // twelve to one
	headerNats = 7.5  // to convict headers, which are right nearly always: three times as much
	trialFresh = 40   // calls of older evidence that count: as many as one trial can overrule
	trialDrop  = 4    // if the pace is guilty, going slower cuts the share of refusals by so much
	trialLeast = 3    // calls let in before chance is found guilty
	trialLost  = 8    // refusals of a trial that is still too fast
)

// A verdict is what a trial has come to.
type verdict uint8

const (
	open     verdict = iota
	byChance         // as many are refused at the slower pace
	byPace           // hardly any is
	tooFast          // most are: the trial itself is over the limit
)

// A trial is under way after an alarm: what share of calls is refused at a slower pace?
type trial struct {
	pace    float64 // calls per second at most
	bin     int     // of the refused call: only slower ones count
	began   float64 // what left before does not count
	excess  float64 // the share that was refused at the pace in question
	calls   float64 // at slower paces, older evidence included,
	refused float64
	before  beliefs // that the alarm replaced
}

// count takes what became of a call, if it is one of the trial's.
func (r *trial) count(f *fate, bin int) {
	if f.at < r.began || bin >= r.bin {
		return
	}
	r.calls++
	if f.refused {
		r.refused++
	}
}

// odds is what the refusals of the trial say for chance and against the pace, in nats.
func (r *trial) odds() float64 {
	less := r.excess / trialDrop
	return r.refused*math.Log(r.excess/less) + (r.calls-r.refused)*lessLikely(less, r.excess)
}

func (r *trial) verdict() verdict {
	let := r.calls - r.refused
	switch odds := r.odds(); {
	case r.refused >= trialLost && r.refused > let:
		return tooFast
	case odds > trialNats && let >= trialLeast:
		return byChance
	case odds < -trialNats:
		return byPace
	}
	return open
}
