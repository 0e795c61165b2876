package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// The user's limit holds after headers were found wrong, whether the user gave it before they spoke or after. At first as many calls
// may have been saved up as any bucket holds.
func TestUsersLimitOutlivesWrongHeaders(t *testing.T) {
	for _, tells := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprint(tells), func(t *testing.T) {
			m := newModel(limiter.LawConfig{}, noon)
			r := newRig(m, neverLess(free))
			r.run(tells)
			m.SetLimits(r.now, limiter.Limits{RPM: 60 * usersRate})
			if r.runUntil(time.Minute, func() bool { return m.headersLie }); !m.headersLie {
				t.Fatal("the headers are believed")
			}
			keepsToUser(t, r)
		})
	}
}

// So does it where refusals had shown what flows in, before headers permitted more.
func TestUsersLimitOutlivesHeadersThatARefusalConvicts(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	r := newRig(m, bucketGate(3, 10))
	r.run(time.Minute)
	m.SetLimits(r.now, limiter.Limits{RPM: 60 * usersRate})
	r.gate = neverLess(r.gate)
	if r.runUntil(time.Minute, func() bool { return m.gauges[dimRequests].source == limiter.Seen }); !m.estimate.inflow.known() {
		t.Fatal("nobody knows what flows in")
	}
	m.trial = &trial{}
	m.blamePace()
	want(t, "source", m.gauges[dimRequests].source, limiter.Configured)
	keepsToUser(t, r)
}

// After a restart the user's burst is known as before, so that the lane reaches the user's limit.
func TestUsersLimitOutlivesWrongHeadersAndARestart(t *testing.T) {
	before := newModel(limiter.LawConfig{}, noon)
	before.SetLimits(noon, limiter.Limits{RPM: 60 * usersRate})
	r := newRig(before, neverLess(free))
	r.runUntil(time.Minute, func() bool { return before.gauges[dimRequests].source == limiter.Seen })
	want(t, "lies", before.headersLie, false)
	m := newModel(limiter.LawConfig{}, r.now)
	m.SetLimits(r.now, limiter.Limits{RPM: 60 * usersRate})
	must.Do(t, m.Restore(r.now, before.Save(r.now)))
	next := newRig(m, neverLess(free))
	next.now = r.now
	if next.runUntil(time.Minute, func() bool { return m.headersLie }); !m.headersLie {
		t.Fatal("the headers are believed")
	}
	near(t, "a bucket holds", m.gauges[dimRequests].holds(), usersRate*(limiter.DefaultBurst.Seconds()-burstReserve), 1e-6)
	keepsToUser(t, next)
}

// usersRate is the user's limit, in calls a second.
const usersRate = 5

func free(time.Time, int) answer { return answer{} }

// neverLess has a gate say of four calls a second that all but one are left.
func neverLess(g gate) gate {
	return func(now time.Time, beside int) answer {
		a := g(now, beside)
		a.sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 240, Window: time.Minute, Remaining: 239, Reset: 250 * time.Millisecond, HasReset: true,
		}}
		return a
	}
}

// keepsToUser lets ten minutes pass in which the provider lets in each call.
func keepsToUser(t *testing.T, r *rig) {
	t.Helper()
	r.gate = free
	for minute := range 10 {
		before := r.sent
		r.run(time.Minute)
		n, most := r.sent-before, 60*usersRate+1
		if minute == 0 {
			most += int(usersRate * limiter.DefaultBurst.Seconds())
		}
		if n > most || minute > 7 && n < 55*usersRate {
			t.Errorf("minute %d: %d calls, want %d at most, and in the end about so many", minute, n, most)
		}
	}
}
