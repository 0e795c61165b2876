package model

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// busyMinute returns the calls of that cost that leave in a minute, where each is answered at
// once with headers that always show the same.
func busyMinute(m *Law, from float64, c limiter.Cost, seen limiter.Sighting) (n int) {
	for s := from; s < from+60; s += 0.02 {
		m.Tick(at(s), true)
		if wait, _ := m.Wait(at(s), c); wait > 0 {
			continue
		}
		k := m.Sent(at(s), c, 0)
		m.Answered(at(s+0.01), limiter.News{Ticket: k, Sent: at(s), Cost: c, Present: true, Good: true, Sightings: []limiter.Sighting{seen}})
		n++
	}
	return n
}

// Headers with a larger limit than the user's lift nothing over the user's: the user set it so
// that other users of the key have the rest.
func TestHeadersLiftNothingOverTheUsersLimit(t *testing.T) {
	c := limiter.Cost{Requests: 1, Input: 100}
	requests := limiter.Sighting{Dimension: limiter.Requests, Limit: 6000, Remaining: 5999, Reset: 10 * time.Millisecond, HasReset: true}
	silent := limiter.Sighting{Dimension: limiter.Requests, Limit: 6000, Remaining: 5999}
	inTokens := limiter.Sighting{Dimension: limiter.Tokens, Limit: 1e6, Remaining: 1e6 - 100}
	for _, x := range []struct {
		configured limiter.Limits
		seen       limiter.Sighting
		most       int
	}{
		{limiter.Limits{RPM: 60}, requests, 62},
		{limiter.Limits{RPM: 60}, silent, 62},
		{limiter.Limits{RPM: 60, Burst: 10 * time.Second}, requests, 72},
		{limiter.Limits{TPM: 6000}, inTokens, 60 + 5000/100}, // what a bucket of tokens holds at least
	} {
		m := newModel(limiter.LawConfig{Limits: x.configured}, noon)
		if n := busyMinute(m, 0, c, x.seen); n > x.most || n < 50 {
			t.Errorf("told %+v, shown %v: %d calls in a minute, want %d at most", x.configured, x.seen.Limit, n, x.most)
		}
	}
}

// Headers with a smaller limit may say that a whole minute of it was saved up. The user's limit is not exceeded for that.
func TestHeadersSpendNoSavingsOverTheUsersLimit(t *testing.T) {
	for _, x := range []struct {
		configured  limiter.Limits
		least, most int
	}{
		{limiter.Limits{RPM: 300}, 285, 302},
		{limiter.Limits{RPM: 240}, 230, 242},
		{limiter.Limits{RPM: 600}, 440, 480},                     // what headers let through
		{limiter.Limits{RPM: 300, Burst: time.Minute}, 440, 480}, // the user lets as many be saved up
		{limiter.Limits{RPM: 240, Burst: time.Minute}, 440, 480},
	} {
		m := newModel(limiter.LawConfig{Limits: x.configured}, noon)
		level, last := 240.0, noon
		r := newRig(m, func(now time.Time, _ int) answer {
			level, last = min(240, level+4*now.Sub(last).Seconds()), now
			if level < 1 {
				return answer{refused: true}
			}
			level--
			full := time.Duration((240 - level) / 4 * float64(time.Second))
			return answer{sightings: []limiter.Sighting{{
				Dimension: limiter.Requests, Limit: 240, Window: time.Minute, Remaining: math.Floor(level), Reset: full, HasReset: true,
			}}}
		})
		if r.run(time.Minute); r.sent < x.least || r.sent > x.most || r.refused > 0 {
			t.Errorf("told %+v, shown 240 a minute: %d calls in a minute, %d refused, want %d to %d", x.configured, r.sent, r.refused, x.least, x.most)
		}
		before := r.sent
		if r.run(time.Minute); r.sent-before < 225 {
			t.Errorf("told %+v: %d calls in the second minute", x.configured, r.sent-before)
		}
	}
}

// A call knows the pace at which it left really, though headers would permit a faster one: a refusal is blamed by it.
func TestPaceUnderHeadersIsTheUsers(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 60 * usersRate}}, noon)
	r := newRig(m, neverLess(free))
	r.runUntil(time.Minute, func() bool { return m.gauges[dimRequests].source == limiter.Seen }).run(time.Second)
	want(t, "source", m.gauges[dimRequests].source, limiter.Seen)
	if pace, _ := m.paceOf(m.seconds(r.now), [dims]float64{1}); pace > 1.2*usersRate || pace < usersRate {
		t.Errorf("%v a second, want about %v", pace, usersRate)
	}
}

// Headers that show less than the user's limit first, all of it left, and then more, let nothing be saved up of what they showed.
func TestLargerHeadersLeaveNoSavings(t *testing.T) {
	for _, x := range []struct {
		burst time.Duration
		most  int
	}{{0, 302}, {10 * time.Second, 352}} {
		m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 300, Burst: x.burst}}, noon)
		r := newRig(m, func(now time.Time, _ int) answer {
			s := limiter.Sighting{Dimension: limiter.Requests, Limit: 240, Window: time.Minute, Remaining: 239}
			if now.After(at(2)) {
				s.Limit, s.Remaining = 6000, 5999
			}
			return answer{sightings: []limiter.Sighting{s}}
		})
		r.run(3 * time.Second)
		before := r.sent
		r.run(2 * time.Second)
		g := m.gauges[dimRequests]
		want(t, "source", g.source, limiter.Configured)
		near(t, "capacity", g.capacity, g.usersCapacity(), 1e-9)
		if r.run(58 * time.Second); r.sent-before > x.most || r.sent-before < 285 {
			t.Errorf("burst %v: %d calls in a minute, want %d at most", x.burst, r.sent-before, x.most)
		}
	}
}

// The same where the limit was lowered when headers were known; and once the user takes it
// back all that is shown may be used.
func TestLoweredLimitHoldsAgainstHeaders(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	seen := limiter.Sighting{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: 590}
	if n := busyMinute(m, 0, one, seen); n < 500 {
		t.Errorf("%d calls in a minute, and 600 are shown", n)
	}
	m.SetLimits(at(60), limiter.Limits{RPM: 60})
	if n := busyMinute(m, 60, one, seen); n > 62 || n < 50 {
		t.Errorf("%d calls in a minute, and 60 were told", n)
	}
	m.SetLimits(at(120), limiter.Limits{})
	if n := busyMinute(m, 120, one, seen); n < 500 {
		t.Errorf("%d calls in a minute, and nothing but headers limits them", n)
	}
}

// What headers show is left counts also where the user's limit is lower: others may have
// used it up.
func TestWhatIsLeftCountsUnderTheUsersLimit(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Minute}}, noon)
	n := leave(m, noon, one)
	n.Good, n.Sightings = true, []limiter.Sighting{{Dimension: limiter.Requests, Limit: 6000, Window: time.Minute, Remaining: 3}}
	m.Answered(at(0.1), n)
	if level := viewOf(m, at(0.1)).Level(limiter.Requests); level > 4 {
		t.Errorf("%v calls are thought to be left, and 3 are shown", level)
	}
}

// A bucket that headers show to be nearly empty, always, may be taken for a window that
// ends soon. A call that is larger than what was ever left waits for its end, and leaves
// then: it does not wait for what will never be.
func TestLargeCallLeavesWhenAWindowEnds(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	small, large := limiter.Cost{Requests: 1, Input: 10}, limiter.Cost{Requests: 1, Input: 2000}
	for s := 0.0; s < 20; s++ {
		k := m.Sent(at(s), small, 0)
		seen := limiter.Sighting{Dimension: limiter.Tokens, Limit: 6000, Window: time.Minute, Remaining: 5000, Reset: time.Minute, HasReset: true}
		if s > 5 {
			seen.Remaining, seen.Reset = 20, time.Duration(30-s)*time.Second
		}
		m.Answered(at(s+0.1), limiter.News{Ticket: k, Sent: at(s), Cost: small, Present: true, Good: true, Sightings: []limiter.Sighting{seen}})
	}
	if g := &m.gauges[dimTokens]; !g.isFixed() || g.fixed.most > 100 {
		t.Fatalf("no small window: %+v", g)
	}
	now, asked := at(20), 0
	for wait := time.Duration(1); wait > 0 && asked < 2000; asked++ {
		m.Tick(now, true)
		wait, _ = m.Wait(now, large)
		now = now.Add(wait)
	}
	if waited := now.Sub(at(20)); waited > time.Minute || waited < 5*time.Second || asked > 1000 {
		t.Errorf("it leaves after %v, having asked %d times", waited, asked)
	}
}

// A rate that is lowered while headers show that others draw on it, by the user or because
// of refusals, is not used up by them for ever: the level rises, and calls leave.
func TestLoweredLimitLeavesSomething(t *testing.T) {
	for name, lower := range map[string]func(m *Law){
		"by the user": func(m *Law) { m.SetLimits(at(30), limiter.Limits{RPM: 20}) },
		"by a trial":  func(m *Law) { m.searchBelow(20.0 / 60) },
	} {
		t.Run(name, func(t *testing.T) { leavesSomething(t, lower) })
	}
}

func leavesSomething(t *testing.T, lower func(m *Law)) {
	m := newModel(limiter.LawConfig{}, noon)
	for s := 0; s < 30; s++ {
		k := m.Sent(at(float64(s)), one, 0)
		seen := limiter.Sighting{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: float64(590 - 9*s)} // of ten a second nine are others'
		m.Answered(at(float64(s)+0.1), limiter.News{Ticket: k, Sent: at(float64(s)), Cost: one, Present: true, Good: true, Sightings: []limiter.Sighting{seen}})
	}
	lower(m)
	before := viewOf(m, at(31)).Level(limiter.Requests)
	if after := viewOf(m, at(600)).Level(limiter.Requests); after < before {
		t.Errorf("the level falls from %v to %v, and nobody calls", before, after)
	}
	sent := 0
	for s := 30.0; s < 630; s += 0.25 {
		m.Tick(at(s), true)
		if wait, _ := m.Wait(at(s), one); wait == 0 {
			m.Sent(at(s), one, 0)
			sent++
		}
	}
	if sent < 15 {
		t.Errorf("%d calls left in ten minutes of 20 a minute, nine tenths of which are others'", sent)
	}
}
