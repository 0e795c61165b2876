package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The periods that providers' limits are known to have, in seconds.
var periods = [...]float64{1, 10, 60, 3600, 86400}

const (
	usualPeriod = 60   // until something else was found out
	periodNear  = 0.15 // how far a measured period may lie from a known one
	// periodVotes is how many sightings must agree, at different levels. A bucket
	// that is not as deep as its limit is wide looks like some period at any one
	// level, but not like the same at two.
	periodVotes = 3
	periodSpan  = 1.4
	// roundedMost is up to where a whole number of seconds is taken for a rounded one,
	// which is too coarse to measure by.
	roundedMost = 5 * time.Second
	// slopeUsed is how many units two sightings differ by at least where they are held
	// against each other: what is left is rounded to one, so the slope is good to a tenth.
	slopeUsed = 10
)

// periodGuess finds out what period a limit is for, where the headers do not say:
// a bucket that refills in its period is whole again after
//
//	reset = used / limit · period
//
// So Groq's "limit 14400, remaining 14370, reset 2m59.56s" is a limit by the day.
type periodGuess struct {
	found       float64 // 0: not yet
	candidate   float64
	votes       int
	least, most float64 // used, of the votes
	slope       slopeProof
}

// slopeProof shows that resets agree with the period that is believed. In a bucket of any
// depth each unit that is drawn delays the reset by the same time:
//
//	Δreset = −Δremaining / limit · period
//
// In a window both fall together, so that nothing is proved there.
type slopeProof struct {
	last  limiter.Sighting // that the next one is held against
	votes int              // in a row
}

// see takes a sighting with a reset that is good to measure by.
func (p *slopeProof) see(s *limiter.Sighting, period float64) {
	drawn := p.last.Remaining - s.Remaining
	if p.last.Limit != s.Limit {
		*p = slopeProof{last: *s}
		return
	}
	if math.Abs(drawn) < slopeUsed {
		return
	}
	measured := (s.Reset - p.last.Reset).Seconds() * s.Limit / drawn
	if p.last = *s; math.Abs(measured-period) > periodNear*period {
		p.votes = 0
		return
	}
	p.votes++
}

// proved reports whether resets have agreed with the period time and again.
func (p *slopeProof) proved() bool { return p.votes >= periodVotes }

// period is what is believed, in seconds.
func (p *periodGuess) period() float64 {
	if p.found > 0 {
		return p.found
	}
	return usualPeriod
}

// learn takes a sighting.
func (p *periodGuess) learn(s limiter.Sighting) {
	used := s.Limit - s.Remaining
	if !s.HasReset || used < 2 || s.Reset <= 0 || s.Reset < roundedMost && s.Reset%time.Second == 0 {
		return
	}
	p.slope.see(&s, p.period())
	near := nearest(s.Reset.Seconds() * s.Limit / used)
	if near == 0 || near != p.candidate {
		*p = periodGuess{found: p.found, candidate: near, least: used, most: used, slope: p.slope}
	}
	if near == 0 {
		return
	}
	p.votes++
	p.least, p.most = min(p.least, used), max(p.most, used)
	if p.votes >= periodVotes && p.most >= periodSpan*p.least {
		p.found = near
	}
}

// shorten tries the next shorter period, if there is one.
func (p *periodGuess) shorten() bool {
	for i := len(periods) - 1; i >= 0; i-- {
		if periods[i] < p.period() {
			*p = periodGuess{found: periods[i]}
			return true
		}
	}
	return false
}

// nearest is the known period that seconds come near to; 0 if none.
func nearest(seconds float64) float64 {
	for _, p := range periods {
		if math.Abs(seconds-p) <= periodNear*p {
			return p
		}
	}
	return 0
}
