package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// When the breaker has opened and a call was let in again, half of the rate is asked for,
// and all of it a doubling later: nobody knows who else comes back. A lane that was only
// refused goes on at the rate that is known.
func TestPaceAfterAnOutage(t *testing.T) {
	for _, broken := range []bool{true, false} {
		m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: 5 * time.Second}}, noon)
		if broken {
			m.Broken(at(100))
		}
		m.Resume(at(110))
		until, share := m.Climb(at(110)), 1.0
		if broken {
			share = openShare
		}
		// What was saved up may be spent at four times the rate, once the pace bounds nothing.
		near(t, "pace at first", min(10, viewOf(m, at(110)).Most), 10*share, 1e-9)
		near(t, "seconds of climbing", until.Sub(at(110)).Seconds(), map[bool]float64{true: backDoubling}[broken], 1e-6)
		if p := viewOf(m, at(110+backDoubling)).Most; p < 10 {
			t.Errorf("broken: %v, and a doubling later %v calls a second", broken, p)
		}
		m.Climb(at(200))
		if p := viewOf(m, at(200)).Most; p < 10 {
			t.Errorf("broken: %v, and %v calls a second after a later hold", broken, p)
		}
	}
}

// droughtOf is a law of ten calls a second, told, whose server says for so many seconds that
// it is too busy, and then lets a call in.
func droughtOf(t *testing.T, seconds float64, overloaded bool) *Law {
	t.Helper()
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: 5 * time.Second}}, noon)
	failing(t, m, 0, 20, 0)
	for s := 20.0; s < 20+seconds; s++ {
		n := leave(m, at(s), one)
		n.Probe, n.Overloaded, n.Latency = true, overloaded, 100*time.Millisecond
		m.Refused(at(s+0.1), n)
	}
	n := leave(m, at(20+seconds), one)
	n.Probe, n.Good = true, true
	m.Answered(at(20.5+seconds), n) // by now it would have been refused, so it is known that it was let in
	return m
}

// A server that was too busy for anybody, and for long, was down: it is not asked for all
// at once when it is back. One that said slow down, or was busy for a moment, was not.
func TestPaceAfterALongBusyTime(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		busy    bool
		share   float64
	}{{downAfter + 5, true, openShare}, {downAfter + 5, false, 1}, {downAfter - 5, true, 1}} {
		m := droughtOf(t, c.seconds, c.busy)
		near(t, "share of the rate", min(10, viewOf(m, at(20.5+c.seconds)).Most)/10, c.share, 1e-3)
	}
}

// Where what is still to come fits the level nothing is kept in reserve for later, and it
// leaves as fast as a surplus may; where more is to come, or nobody knows, it is.
func TestNoReserveAtTheEnd(t *testing.T) {
	leaves := func(remaining float64, headers bool) (n int) {
		m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: 6 * time.Second}}, noon)
		if headers {
			m = newModel(limiter.LawConfig{}, noon)
			first := leave(m, noon, one)
			first.Good, first.Sightings = true, []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: 60}}
			m.Answered(at(0.1), first)
		}
		m.setReserve(0.1, 4) // after refusals that nobody asked for
		for now := 0.1; now < 3; now += 0.01 {
			if remaining > 0 {
				m.Remaining(limiter.Cost{Requests: remaining - float64(n)})
			}
			if wait, _ := m.Wait(at(now), one); wait == 0 {
				m.Sent(at(now), one, 0)
				n++
			}
		}
		return n
	}
	for _, headers := range []bool{false, true} {
		ending, going, unknown := leaves(50, headers), leaves(1e6, headers), leaves(0, headers)
		if going != unknown || float64(ending) < 1.1*float64(going) {
			t.Errorf("headers %v: %d calls left at the end, %d while many were to come, %d where nobody knew", headers, ending, going, unknown)
		}
	}
}
