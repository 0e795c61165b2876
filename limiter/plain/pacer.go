package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// A pacer spaces calls evenly at a rate that may change from one look to the next. It keeps
// credit, which rises with rate·time, and a call costs 1. If it kept the next send time
// instead, a rate that rises would not shorten a wait already begun. One call at 0.05/s would
// hold its successor for 20 s, whatever was learned since.
//
// The whole time since the last Take counts at the rate given now; owners that change
// the rate look often enough for that, and [measure.Slack] bounds what it can give.
//
// The zero value is ready, and its first call is free.
type pacer struct {
	begun  bool
	credit float64 // as of last
	last   time.Time
}

// Wait returns the time until a call may leave at this rate: 0 if now, never more than
// [measure.MaxWait]. A rate of +Inf never waits; a rate of 0, less or NaN earns nothing.
func (p *pacer) Wait(now time.Time, perSecond float64) time.Duration {
	if math.IsInf(perSecond, 1) {
		return 0
	}
	rate := units(perSecond)
	missing := 1 - p.creditAt(now, rate)
	if missing <= 0 {
		return 0
	}
	return measure.Wait(missing / rate) // +Inf at rate 0, which MaxWait caps
}

// Take spends one call's credit if it is there, and reports whether it was.
func (p *pacer) Take(now time.Time, perSecond float64) bool {
	if p.Wait(now, perSecond) > 0 {
		return false
	}
	left := 0.0 // an infinite rate saves nothing up: the credit would belong to no rate
	if !math.IsInf(perSecond, 1) {
		left = p.creditAt(now, units(perSecond)) - 1
	}
	p.set(now, left)
	return true
}

// Reset leaves no credit at now. It runs when a hold ends, so that the credit of the hold does
// not leave all at once.
func (p *pacer) Reset(now time.Time) { p.set(now, 0) }

func (p *pacer) creditAt(now time.Time, rate float64) float64 {
	if !p.begun {
		return 1
	}
	return min(1+measure.Slack*rate, p.credit+rate*measure.Elapsed(p.last, now))
}

func (p *pacer) set(now time.Time, credit float64) {
	p.begun, p.credit, p.last = true, credit, measure.Later(p.last, now)
}
