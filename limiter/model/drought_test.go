package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Holds lengthen with each refusal while nothing is let in, and are bounded: shorter for a
// server that says it is busy, as it is asked again soon, until it has said so for more
// than a minute. None is shorter than a refusal takes there and back.
func TestHoldsLengthenInADrought(t *testing.T) {
	for _, overloaded := range []bool{false, true} {
		last := 0.0
		for refusals := 1; refusals < 50; refusals++ {
			most := droughtMost
			if overloaded && refusals <= busyPatience {
				most = busyMost
			}
			d := drought{refusals: refusals}
			h := d.hold(0.2, 0.05, overloaded)
			if h < last || h > most || h < 0.4 || h == last && h < most {
				t.Fatalf("overloaded %v: the %d. hold is %v s after %v s", overloaded, refusals, h, last)
			}
			last = h
		}
		want(t, "the longest hold", last, droughtMost)
	}
}

// A slow rate is held for a call's time at least, and the shortest hold has a floor.
func TestFirstHold(t *testing.T) {
	d := drought{refusals: 1}
	near(t, "hold", d.hold(0.001, 5, false), 5, 1e-9)
	near(t, "hold", d.hold(0.001, 0.001, false), droughtLeast, 1e-9)
}

// A window has ended if the wait was long, measured in calls too; the server was down if
// it said nothing but busy for longer.
func TestWhatADroughtWas(t *testing.T) {
	for _, c := range []struct {
		busy         bool
		lasted, rate float64
		window, down bool
	}{
		{false, 0.5, 10, false, false},
		{false, 9, 10, true, false},
		{false, 9, 0.1, false, false},
		{false, 1000, 10, true, false},
		{true, downAfter - 1, 10, true, false},
		{true, 1000, 10, true, true},
	} {
		d := drought{began: 50, busy: c.busy}
		want(t, "a window's end", d.wasFixed(50+c.lasted, c.rate), c.window)
		want(t, "down", d.wasDown(50+c.lasted), c.down)
	}
}

// One refusal that was about the rate says that the server is up, however many said busy.
func TestBusyMeansAllOfThem(t *testing.T) {
	for _, c := range []struct {
		overloaded []bool
		want       bool
	}{{[]bool{true, true, true}, true}, {[]bool{true, false, true}, false}, {[]bool{false, true}, false}} {
		m := newModel(limiter.LawConfig{}, noon)
		for i, overloaded := range c.overloaded {
			now := at(float64(i))
			m.Tick(now, false)
			k := m.Sent(now, one, 0)
			m.Refused(at(float64(i)+0.1), limiter.News{Ticket: k, Sent: now, Cost: one, Present: true, Probe: true, Overloaded: overloaded})
		}
		want(t, "busy", m.drought.busy, c.want)
		want(t, "escalation", m.drought.refusals, len(c.overloaded))
	}
}

// After an outage that said busy the lane knows what it knew before.
func TestOutageTeachesNoRate(t *testing.T) {
	for seed := range uint64(4) {
		p := fullPail(10, 20)
		up := bucketServer(p, 0.5)
		w := newLawWorld(limiter.LawConfig{}, seed, func(t float64, beside int) reply {
			if t > 120 && t < 180 {
				return reply{kind: isRefused, after: 0.1, news: limiter.News{Overloaded: true}}
			}
			return up(t, beside)
		})
		w.run(120, 1e9)
		before := viewOf(w.law, at(120)).Rate
		calls := len(w.sent)
		w.run(180, 1e9)
		if n := len(w.sent) - calls; n > 90 {
			t.Errorf("seed %d: %d calls in a minute of outage", seed, n)
		}
		w.run(240, 1e9)
		near(t, "rate", viewOf(w.law, at(240)).Rate, before, 0.3*before)
		near(t, "calls a second", w.between(200, 240), 10, 2)
	}
}

// Another limit that the user sets while nothing is let in stays, whatever was learned before.
func TestLimitsConfiguredInADroughtStay(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	old := m.beliefs()
	m.drought = &drought{began: 0, refusals: 5, busy: true, lesson: &lesson{before: old}}
	m.SetLimits(at(10), limiter.Limits{RPM: 20})
	m.endDrought(100, 100)
	near(t, "rate", viewOf(m, at(100)).Rate, 20.0/60, 1e-9)
	if pace := viewOf(m, at(130)).Most; pace > 2 {
		t.Errorf("%v calls a second of 20 a minute", pace)
	}
}

// When it turns out that the server was down, the level is put back as if nothing had been
// learned, but the probe that found out is paid for.
func TestProbeAfterAnOutageIsCharged(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}, noon)
	m.gauges[dimRequests].take(50)
	m.drought = &drought{began: 0, refusals: 5, busy: true, lesson: &lesson{before: m.beliefs()}}
	m.Sent(at(19), limiter.Cost{Requests: 1}, 0)
	m.endDrought(20, 20)
	near(t, "level", viewOf(m, at(20)).Level(limiter.Requests), 10+20-1-burstReserve, 1e-9)
}

// The pace rises from when the end of an outage is known. The probe that found out may have left long before.
func TestASlowProbeIsFollowedByASlowStart(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Second}}, noon)
	m.drought = &drought{began: 0, refusals: 5, busy: true, pace: 10}
	m.Sent(at(20), one, 0)
	m.takeKnownFates(50, 0)
	want(t, "the drought is over", m.drought == nil, true)
	near(t, "seconds since the slow start began", 50-m.openAt, 0, 1e-9)
}

// It turns out when the fate of the probe is known, and by then calls have left after it:
// the level that is put back has paid for them too.
func TestCallsBeforeAnOutageIsFoundOutAreCharged(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}, noon)
	m.gauges[dimRequests].take(50)
	m.drought = &drought{began: 0, refusals: 5, busy: true, lesson: &lesson{before: m.beliefs()}}
	for _, left := range []float64{19, 21, 22} {
		m.Sent(at(left), limiter.Cost{Requests: 1}, 0)
	}
	m.endDrought(19, 19)
	near(t, "level", viewOf(m, at(23)).Level(limiter.Requests), 10+23-3-burstReserve, 1e-9)
}

// A refusal of a call that left in a drought says what is known: nothing is let in. One that
// left before it says that the drought began earlier.
func TestStragglersInADrought(t *testing.T) {
	for _, c := range []struct {
		left   float64
		counts int
	}{{9, 1}, {10, 0}, {11, 0}} {
		m := newModel(limiter.LawConfig{}, noon)
		k := m.Sent(at(c.left), one, 0)
		m.drought = &drought{began: 10, refusals: 2}
		m.Straggled(at(c.left+0.1), limiter.News{Ticket: k, Sent: at(c.left), Cost: one})
		want(t, "refusals in a row", int(m.refusalRow), c.counts)
		m.takeKnownFates(1000, 0)
		want(t, "calls that were let in", int(m.chance.letInRow), 0)
	}
	m := newModel(limiter.LawConfig{}, noon)
	m.Straggled(at(11.1), limiter.News{Ticket: m.Sent(at(11), one, 0), Sent: at(11), Cost: one})
	want(t, "refusals in a row without a drought", int(m.refusalRow), 1)
}

// A drought that a restart lies in ends like any other: the pace is the one before it.
func TestARestartInAnOutageForgetsNoPace(t *testing.T) {
	k := limiter.Memory{Version: limiter.MemoryVersion, Law: "model", At: at(0), Pace: 50, Drought: &limiter.DroughtMemory{Began: at(-5), Refusals: 4, Busy: true}}
	m := restored(t, at(1), k, limiter.LawConfig{Limits: limiter.Limits{RPM: 3000}})
	m.endDrought(10, 10)
	near(t, "pace before the outage", m.lastPace, 50, 1e-6)
}
