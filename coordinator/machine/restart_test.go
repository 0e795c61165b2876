package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// climber is a lane with a ramp of the user's: from 1 to 11 calls a second in 100 s.
var climber = LaneConfig{
	Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1},
	Ramp: limiter.RampConfig{Initial: 1, Target: 11, Duration: 100 * time.Second},
}

// A lane that climbed when its machine ended climbs on in the next one, from where it
// would be, and flows when the ramp is over; one that begins later than that flows.
func TestRestoredLaneClimbsOn(t *testing.T) {
	b := newBed(climber, RunConfig{})
	b.offer(20, DefaultPool, 0)
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Second}))
	b.calls = b.calls[:0]
	b.decide()
	b.wait(time.Second)
	b.end(0, Outcome{Signal: Succeeded}) // the probe
	began := b.now
	if s := b.lane(); s.Phase != Ramping {
		t.Fatalf("%v", s.Phase)
	}
	b.wait(10 * time.Second)
	k, _ := b.SaveLane(b.now, DefaultPool)
	next := recalled(climber, began.Add(60*time.Second), k)
	next.offer(5000, DefaultPool, 0)
	s := next.lane()
	if s.Phase != Ramping || s.Reason != ByMemory || !s.Until.Equal(began.Add(100*time.Second)) {
		t.Errorf("%v (%v) until %v", s.Phase, s.Reason, s.Until.Sub(began))
	}
	next.wait(40 * time.Second)
	if s := next.lane(); s.Phase != Flowing {
		t.Errorf("after the ramp's end: %v", s.Phase)
	}
	late := recalled(climber, began.Add(101*time.Second), k)
	late.offer(60, DefaultPool, 0)
	if s := late.lane(); s.Phase != Flowing || len(late.calls) != 60 {
		t.Errorf("begun after the ramp's end: %v, %d of 60 calls left at once", s.Phase, len(late.calls))
	}
}

// A refusal of an old call that lengthens a cooldown is no transition, and worth saving all the
// same: Lengthened reports it.
func TestLongerCooldownIsReported(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(3, DefaultPool, 0)
	for i, c := range []struct {
		retryAfter         time.Duration
		changed, lengthens bool
	}{{time.Second, true, false}, {time.Minute, false, true}, {time.Second, false, false}} {
		b.Step(b.now, Settled(b.calls[i], Outcome{Signal: Throttled, Directed: true, RetryAfter: c.retryAfter}))
		ready := b.Ready(b.now)
		if changed := len(ready.Transitions) > 0; changed != c.changed || ready.Lengthened != c.lengthens {
			t.Errorf("refusal %d: changed %v, lengthened %v", i, changed, ready.Lengthened)
		}
	}
	if b.Ready(b.now).Lengthened {
		t.Error("it is told twice")
	}
}

// A call from before a reset lengthens a cooldown that began after it, and that is worth saving, too.
func TestLongerCooldownFromBeforeAResetIsReported(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(1, DefaultPool, 0)
	b.Step(b.now, LaneReset(DefaultPool))
	b.offer(1, DefaultPool, 1)
	for _, c := range []struct {
		call       Grant
		retryAfter time.Duration
		lengthens  bool
	}{{b.calls[1], time.Second, false}, {b.calls[0], time.Minute, true}} {
		b.Step(b.now, Settled(c.call, Outcome{Signal: Throttled, Directed: true, RetryAfter: c.retryAfter}))
		if got := b.Ready(b.now).Lengthened; got != c.lengthens {
			t.Errorf("a wait of %v: lengthened %v", c.retryAfter, got)
		}
	}
	if until := b.lane().Until; until.Before(b.now.Add(time.Minute)) {
		t.Errorf("the lane cools until %v, less than a minute from %v", until, b.now)
	}
}

// Who resets a lane that was not used yet holds nothing against it, not even what is
// remembered.
func TestResetForgetsTheMemory(t *testing.T) {
	b, k := taught(t, LaneConfig{Law: limiter.Plain}, 1, Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Minute})
	next := recalled(LaneConfig{Law: limiter.Plain}, b.now, k)
	next.Step(next.now, LaneReset(DefaultPool))
	next.offer(1, DefaultPool, 0)
	if s := next.lane(); s.Phase != Flowing || len(next.calls) != 1 {
		t.Errorf("%v, %d calls", s.Phase, len(next.calls))
	}
}

// Whatever a memory says of a ramp, a lane does not climb for ever.
func TestRampThatCannotBeIsNotBelieved(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range []limiter.RampMemory{
		{At: now, Share: 1, Target: 11, Time: 1e18},
		{At: now.Add(1000 * time.Hour), Share: 1, Target: 11, Time: 100},
		{At: now, Share: -1, Target: 11, Time: 100},
		{Share: 1, Target: 11, Time: 100},
	} {
		k := LaneMemory{Version: LaneMemoryVersion, Law: limiter.Memory{Version: limiter.MemoryVersion, Law: "plain", At: now, Ramp: &r}}
		b := recalled(climber, now, k)
		b.offer(1, DefaultPool, 0)
		b.Step(b.now, InputEnded(1))
		phases := []Phase{b.lane().Phase}
		b.wait(101 * time.Second)
		if phases = append(phases, b.lane().Phase); phases[1] != Flowing || len(b.calls) != 1 {
			t.Errorf("%+v: %v, %d calls", r, phases, len(b.calls))
		}
	}
}

// A server that was down when the machine ended is let come back slowly in the next one:
// nobody knows who else comes back.
func TestRestoredOutageIsClimbedOutOf(t *testing.T) {
	b, k := taught(t, LaneConfig{Limits: limiter.Limits{RPM: 6000}}, 38, Outcome{Signal: Failed}) // all that are under way
	next := recalled(LaneConfig{Limits: limiter.Limits{RPM: 6000}}, b.now.Add(5*time.Second), k)
	next.offer(50, DefaultPool, 0)
	next.wait(time.Second)
	if s := next.lane(); s.Phase != Probing || len(next.calls) != 1 {
		t.Fatalf("%v, %d calls", s.Phase, len(next.calls))
	}
	next.end(time.Second, Outcome{Signal: Succeeded})
	if s := next.lane(); s.Phase != Ramping {
		t.Errorf("after the probe: %v", s.Phase)
	}
}

// A machine that ends while a probe is on its way does not know how that went: the next one
// sends another before it lets all go; ten minutes later nobody needs it.
func TestRestoredLaneIsProbedAgain(t *testing.T) {
	c := LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}}
	b, _ := taught(t, c, 1, Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Second})
	b.wait(time.Second)
	k, _ := b.SaveLane(b.now, DefaultPool)
	if s := b.lane(); s.Phase != Probing {
		t.Fatal(s.Phase)
	}
	next := recalled(c, b.now.Add(5*time.Second), k)
	next.offer(5, DefaultPool, 0)
	next.wait(time.Millisecond)
	if s := next.lane(); s.Phase != Probing || len(next.calls) != 1 {
		t.Errorf("%v, %d calls", s.Phase, len(next.calls))
	}
	late := recalled(c, b.now.Add(10*time.Minute), k)
	late.offer(5, DefaultPool, 0)
	if s := late.lane(); s.Phase != Flowing || len(late.calls) == 0 {
		t.Errorf("ten minutes later: %v, %d calls", s.Phase, len(late.calls))
	}
}
