package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The law tells Groq's daily limits from limits by the minute, and does not take a bucket that
// is shallower than its limit for a shorter period.
func TestPeriodGuess(t *testing.T) {
	see := func(p *periodGuess, limit, depth, period, used float64) {
		p.learn(limiter.Sighting{Limit: limit, Remaining: depth - used, Reset: time.Duration(used / limit * period * 1e9), HasReset: true})
	}
	var day, second, shallow, minute periodGuess
	for used := 30.0; used < 60; used++ {
		see(&day, 14400, 14400, 86400, used)
		see(&second, 100, 100, 1, used)
		see(&minute, 600, 600, 60, used)
	}
	for used := 1.0; used < 50; used += 0.25 {
		see(&shallow, 600, 50, 60, used)
	}
	for i, p := range []struct{ got, want float64 }{
		{day.period(), 86400}, {second.period(), 1}, {minute.period(), 60}, {shallow.period(), 60},
	} {
		if p.got != p.want {
			t.Errorf("%d: a period of %v s, want %v", i, p.got, p.want)
		}
	}
}
