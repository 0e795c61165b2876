package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A hearing law keeps the news of answers and refusals.
type hearingLaw struct {
	limiter.Law
	news []limiter.News
}

func (l *hearingLaw) Answered(now time.Time, n limiter.News) {
	l.news = append(l.news, n)
	l.Law.Answered(now, n)
}

func (l *hearingLaw) Failed(now time.Time, n limiter.News) {
	l.news = append(l.news, n)
	l.Law.Failed(now, n)
}

func (l *hearingLaw) Straggled(now time.Time, n limiter.News) time.Time {
	l.news = append(l.news, n)
	return l.Law.Straggled(now, n)
}

// A call of another machine counts as an answer on a lane that is in use from then on; no
// call in flight is one less, and none of the counts of this machine's own calls is more.
func TestOverheardAnswerCounts(t *testing.T) {
	rule := limiter.Charge{Rule: limiter.ChargeBoth, OutputFactor: 2}
	b := newBed(LaneConfig{Charge: rule}, RunConfig{})
	b.offer(1, "", 0)
	l := b.lanes[DefaultPool]
	law := &hearingLaw{Law: l.law}
	l.law = law
	totals, epoch := b.totals, l.epoch
	o := Outcome{Signal: Succeeded, Latency: 30 * time.Second, Measured: true, Actual: limiter.Cost{Requests: 1, Output: 5}}
	b.Step(b.now, Overheard(DefaultPool, b.now.Add(-30*time.Second), limiter.Cost{Requests: 1, Output: 7}, o))
	if l.answers != 1 || l.latency.Mean() != 30*time.Second || l.inFlight != 1 || l.epoch != epoch || b.totals != totals || !l.heard() {
		t.Errorf("answers %d, latency %v, %d in flight", l.answers, l.latency.Mean(), l.inFlight)
	}
	b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{}, Outcome{Signal: Failed, Timeout: true}))
	if failed := law.news[1]; !failed.Overheard || !failed.Timeout {
		t.Errorf("%+v", failed)
	}
	n := law.news[0]
	if !n.Overheard || n.Present || n.Probe || n.Ticket != (limiter.Ticket{}) || n.Cost.Output != 14 || n.Actual.Output != 10 || !n.Sent.Equal(b.now.Add(-30*time.Second)) {
		t.Errorf("%+v", n)
	}
	b.Step(b.now, Overheard("new", b.now, limiter.Cost{}, Outcome{Signal: Answered}))
	if l := b.lanes["new"]; l == nil || l.answers != 1 {
		t.Errorf("%+v", l)
	}
}

// After an overheard call the machine asks waiting pools again, and a law that speaks. A lane
// with an overheard call is in use.
func TestOverheardIsNews(t *testing.T) {
	law := &scriptedLaw{}
	b := &bed{Machine: New(Config{Lane: LaneConfig{Maker: law}, IdleTTL: time.Minute}), now: storyStart}
	for i := range 10 {
		b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{}, Outcome{Signal: Succeeded}))
		if b.decide(); law.asked != i+1 || len(b.lanes) != 1 {
			t.Fatalf("asked %d times, %d lanes are known", law.asked, len(b.lanes))
		}
		b.now = b.now.Add(50 * time.Second)
	}
	k := limiter.Memory{Version: 1, Law: "model", At: storyStart, Pace: 10, Limits: []limiter.LimitMemory{{On: "input tokens", Source: "seen", Refill: 100, Capacity: 60_000}}}
	b = recalled(LaneConfig{}, storyStart, LaneMemory{Version: 1, Law: k}.Empty())
	if b.offer(1, DefaultPool, 5000); len(b.calls) != 0 {
		t.Fatalf("%v: nothing is in hand", b.calls)
	}
	b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, Outcome{Signal: Succeeded, Sightings: []limiter.Sighting{{
		Dimension: limiter.InputTokens, Limit: 6000, Remaining: 50_000, Window: time.Minute, Reset: 100 * time.Second, HasReset: true,
	}}}))
	if b.decide(); len(b.calls) != 1 {
		t.Error("there is room, as was overheard, and nobody is asked")
	}
}

// A refusal of another machine's call begins no cooldown, and lengthens one by the wait that
// it names and by nothing else. It shows that somebody is there.
func TestOverheardRefusalIsAStraggler(t *testing.T) {
	for _, c := range []LaneConfig{{}, {Law: limiter.Plain}} {
		b := newBed(c, RunConfig{})
		refused := Outcome{Signal: Throttled, Directed: true, RetryAfter: 20 * time.Second, Latency: time.Second}
		for range 10 {
			b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, refused))
			b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, Outcome{Signal: Overloaded, Unclear: true}))
		}
		l := b.lanes[DefaultPool]
		if l.refusal.Mean() != time.Second {
			t.Errorf("refusals take %v", l.refusal.Mean())
		}
		if l.phase != Flowing || l.epoch != 0 || l.counts[throttled] != 0 || !l.heard() {
			t.Fatalf("the lane is %v in epoch %d, heard: %v", l.phase, l.epoch, l.heard())
		}
		if b.offer(1, "", 0); len(b.calls) != 1 || l.alarm.pos >= 0 {
			t.Errorf("%d calls leave", len(b.calls))
		}
		b.cool(b.now, l, ByThrottle, b.now.Add(time.Second))
		b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, Outcome{Signal: Throttled}))
		if l.phase != Cooling || l.until.Sub(b.now) > 2*time.Second {
			t.Fatalf("the lane is %v for %v", l.phase, l.until.Sub(b.now))
		}
		b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, refused))
		if wait := l.until.Sub(b.now); wait < 20*time.Second || wait > 22*time.Second || l.wave != 1 || l.epoch != 1 {
			t.Errorf("the lane cools for %v, a wave of %d, in epoch %d", wait, l.wave, l.epoch)
		}
		b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{Requests: 1}, Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Hour}))
		if wait := l.until.Sub(b.now); wait > 22*time.Second || l.phase != Cooling {
			t.Errorf("a wait that is too long: the lane is %v for %v", l.phase, wait)
		}
	}
}

// A refusal for good stops the lane, unless a person has reset it since the call left, or
// it concerns the item alone; so does a limit by the day of which nothing is left.
func TestOverheardRefusalForGood(t *testing.T) {
	gone := errors.New("no money")
	usedUp := []limiter.Sighting{{Dimension: limiter.Requests, Limit: 10, Window: 24 * time.Hour, Reset: 10 * time.Hour, HasReset: true}}
	for what, c := range map[string]struct {
		sent    time.Duration // before now
		answers bool
		reset   time.Duration // before now; 0: none
		outcome Outcome
		stops   bool
	}{
		"for good":                     {time.Second, false, 0, Outcome{Signal: Exhausted, Cause: gone}, true},
		"it left before the reset":     {time.Minute, false, time.Second, Outcome{Signal: Exhausted, Cause: gone}, false},
		"it left after the reset":      {time.Second, false, time.Minute, Outcome{Signal: Exhausted, Cause: gone}, true},
		"no such model, the first":     {time.Second, false, 0, Outcome{Signal: Exhausted, Alike: 404, First: 1, Later: 5, Cause: gone}, false},
		"no such model, not the first": {time.Second, true, 0, Outcome{Signal: Exhausted, Alike: 404, First: 1, Later: 5, Cause: gone}, false},
		"used up":                      {time.Second, false, 0, Outcome{Signal: Succeeded, Sightings: usedUp}, true},
		"used up before the reset":     {time.Minute, false, time.Second, Outcome{Signal: Succeeded, Sightings: usedUp}, false},
		"used up after the reset":      {time.Second, false, time.Minute, Outcome{Signal: Succeeded, Sightings: usedUp}, true},
	} {
		b := newBed(LaneConfig{}, RunConfig{})
		b.offer(2, "", 0)
		if c.answers {
			b.end(0, Outcome{Signal: Succeeded})
		}
		if c.reset > 0 {
			b.Step(b.now, LaneReset(DefaultPool))
		}
		b.now = b.now.Add(c.reset)
		b.Step(b.now, Overheard(DefaultPool, b.now.Add(-c.sent), limiter.Cost{}, c.outcome))
		if l := b.lanes[DefaultPool]; (l.phase == Stopped) != c.stops || c.stops && c.outcome.Cause != nil && !errors.Is(l.cause, gone) {
			t.Errorf("%s: the lane is %v, %v", what, l.phase, l.cause)
		}
	}
}

// Of a remote lane the leader hears, and of one beyond those that may be known nobody.
func TestOverheardByNobody(t *testing.T) {
	by := &maker{}
	b := &bed{Machine: New(Config{MaxLanes: 1, Lane: LaneConfig{Maker: by}}), now: storyStart}
	for _, s := range []Signal{Succeeded, Throttled, Failed, Exhausted} {
		for _, lane := range []string{"one", "too many"} {
			b.Step(b.now, Overheard(lane, b.now, limiter.Cost{}, Outcome{Signal: s}))
		}
	}
	if l := b.lanes["one"]; len(b.lanes) != 1 || l.phase != Flowing || l.answers != 0 || by.law().strange > 0 || len(by.law().ended) > 0 {
		t.Errorf("%d lanes; %+v", len(b.lanes), l)
	}
}

// A call of another machine that broke, or said nothing, opens no breaker and gives nobody
// up, and is no answer.
func TestOverheardFailures(t *testing.T) {
	b := newBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{})
	for i := range 50 {
		b.now = b.now.Add(10 * time.Second)
		b.Step(b.now, Overheard(DefaultPool, b.now, limiter.Cost{}, Outcome{Signal: []Signal{Failed, Nothing}[i%2], Way: 1}))
	}
	if l := b.lanes[DefaultPool]; l.phase != Flowing || l.breaker.State(b.now) != limiter.Closed || l.heard() || l.silence != nil {
		t.Errorf("the lane is %v, its breaker %v, heard: %v", l.phase, l.breaker.State(b.now), l.heard())
	}
}
