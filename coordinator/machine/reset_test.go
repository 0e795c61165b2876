package machine

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// atReset describes the fate of a lane's field when a person resets the lane. A change that
// adds a field decides it here: nothing may be held against a lane that was vouched for.
type atReset struct {
	why   string
	spoil func(*Machine, *lane) // as bad as it gets; nil: it needs no more than the others do
	holds func(*lane) bool      // after the reset
}

var (
	spoiltLaw   = &answeringLaw{}
	spoiltAt    = storyStart.Add(time.Hour)
	spoiltCount = tally{calls: 7, throttled: 3}
)

var laneFields = map[string]atReset{
	"name": {"whose lane it is", nil, func(l *lane) bool { return l.name == DefaultPool }},
	"cfg":  {"what is known of it from its owner", nil, func(l *lane) bool { return l.cfg.Window == 5 }},

	"law":               {"a new one, that knows nothing", func(_ *Machine, l *lane) { l.law = spoiltLaw }, func(l *lane) bool { return l.law != limiter.Law(spoiltLaw) }},
	"charge":            {"of its config, from the new law on", func(_ *Machine, l *lane) { l.charge = limiter.Charge{Rule: limiter.ChargeBoth} }, func(l *lane) bool { return l.charge == l.cfg.Charge }},
	"hasChargeRule":     {"likewise", func(_ *Machine, l *lane) { l.charge, l.hasChargeRule = limiter.Charge{Rule: limiter.ChargeBoth}, true }, func(l *lane) bool { return !l.hasChargeRule }},
	"breaker":           {"a new one", func(_ *Machine, l *lane) { l.breaker.Failure(storyStart, 0) }, func(l *lane) bool { return l.breaker == limiter.NewBreaker(l.cfg.Breaker) }},
	"phase":             {"", func(_ *Machine, l *lane) { l.phase = Stopped }, func(l *lane) bool { return l.phase == Flowing }},
	"reason":            {"", func(_ *Machine, l *lane) { l.reason = ByRefusal }, func(l *lane) bool { return l.reason == ByHand }},
	"cause":             {"", func(_ *Machine, l *lane) { l.cause = errors.New("no money") }, func(l *lane) bool { return l.cause == nil }},
	"until":             {"", func(_ *Machine, l *lane) { l.until = spoiltAt }, func(l *lane) bool { return l.until.IsZero() }},
	"passAt":            {"", func(_ *Machine, l *lane) { l.passAt = spoiltAt }, func(l *lane) bool { return l.passAt.IsZero() }},
	"alarm":             {"", func(m *Machine, l *lane) { m.alarms.set(&l.alarm, spoiltAt) }, func(l *lane) bool { return l.alarm.pos < 0 }},
	"blocked":           {"the law before it held a call back", func(_ *Machine, l *lane) { l.blocked = true }, func(l *lane) bool { return !l.blocked }},
	"bound":             {"the law before it said so", func(_ *Machine, l *lane) { l.bound = BoundTrial }, func(l *lane) bool { return l.bound == BoundNone }},
	"slowed":            {"the new law is not slowed down", func(_ *Machine, l *lane) { l.slowed = 0.5 }, func(l *lane) bool { return l.slowed == 0 }},
	"broke":             {"", func(_ *Machine, l *lane) { l.broke = true }, func(l *lane) bool { return !l.broke }},
	"unclear":           {"", func(_ *Machine, l *lane) { l.unclear = unclearMost - 1 }, func(l *lane) bool { return l.unclear == 0 }},
	"wave":              {"", func(_ *Machine, l *lane) { l.wave = 9 }, func(l *lane) bool { return l.wave == 0 }},
	"restored":          {"what an earlier machine knew is gone with the law", func(_ *Machine, l *lane) { l.restored = true }, func(l *lane) bool { return !l.restored }},
	"line":              {"who sleeps there is asked again", nil, func(l *lane) bool { return l.line == nil }},
	"poolsWithNextTier": {"a count of its pools", nil, func(l *lane) bool { return l.poolsWithNextTier == 0 }},
	"delay":             {"how long the latest call had to wait", nil, func(l *lane) bool { return l.delay == 0 }},
	"illness":           {"", func(_ *Machine, l *lane) { l.illness = &illness{since: storyStart} }, func(l *lane) bool { return *l.illness == illness{} }},
	"cooldownReason":    {"", func(_ *Machine, l *lane) { l.cooldownReason = ByThrottle }, func(l *lane) bool { return l.cooldownReason == NoReason }},
	"silence":           {"it has its time anew to be heard", func(_ *Machine, l *lane) { l.silence = &silence{tries: silentTries} }, func(l *lane) bool { return l.silence == nil }},
	"wait":              {"it is over, and so are those of items for themselves", func(_ *Machine, l *lane) { l.wait = &wait{since: spoiltAt, ownUntil: spoiltAt} }, func(l *lane) bool { return !l.wait.underWay() && l.wait.ownUntil.IsZero() }},

	"account":          {"whose lane it is", nil, func(l *lane) bool { return l.account == nil }},
	"outside":          {"of its new law", func(_ *Machine, l *lane) { l.outside = &outside{alarm: alarm{pos: -1}} }, func(l *lane) bool { return l.outside == nil }},
	"vouchedAt":        {"older refusals for good of other machines' calls are void", nil, func(l *lane) bool { return l.vouchedAt.Equal(storyStart) }},
	"refusedElsewhere": {"somebody is there all the same", func(_ *Machine, l *lane) { l.refusedElsewhere = true }, func(l *lane) bool { return l.refusedElsewhere }},

	"epoch":        {"a new one: what is in flight is old news", func(_ *Machine, l *lane) { l.epoch = 6 }, func(l *lane) bool { return l.epoch == 7 }},
	"vouchedEpoch": {"older refusals for good are void", nil, func(l *lane) bool { return l.vouchedEpoch == 7 }},
	"lawEpoch":     {"older calls were charged to the law before", nil, func(l *lane) bool { return l.lawEpoch == 7 }},
	"inEpoch":      {"", nil, func(l *lane) bool { return l.inEpoch == 0 }},

	"inFlight":      {"it is a count of what is", nil, func(l *lane) bool { return l.inFlight == 1 }},
	"parked":        {"likewise", func(_ *Machine, l *lane) { l.parked = 4 }, func(l *lane) bool { return l.parked == 4 }},
	"delayed":       {"likewise", func(_ *Machine, l *lane) { l.delayed = 3 }, func(l *lane) bool { return l.delayed == 3 }},
	"counts":        {"they are of all time", func(_ *Machine, l *lane) { l.counts = spoiltCount }, func(l *lane) bool { return l.counts == spoiltCount }},
	"hung":          {"", func(_ *Machine, l *lane) { l.hung = true }, func(l *lane) bool { return !l.hung }},
	"lastEnd":       {"a moment", func(_ *Machine, l *lane) { l.lastEnd = spoiltAt }, func(l *lane) bool { return l.lastEnd.Equal(spoiltAt) }},
	"inFlightAtEnd": {"how many there were then", func(_ *Machine, l *lane) { l.inFlightAtEnd = 5 }, func(l *lane) bool { return l.inFlightAtEnd == 5 }},
	"answers":       {"they speak for the lane: its name and key were right", func(_ *Machine, l *lane) { l.answers = 12 }, func(l *lane) bool { return l.answers == 12 }},
	"answered":      {"likewise", func(_ *Machine, l *lane) { l.answered = true }, func(l *lane) bool { return l.answered }},
	"blame": {"what is in doubt of items is nobody's", func(_ *Machine, l *lane) {
		l.blame = &blame{lastAnswered: spoiltAt, failingSince: spoiltAt, bad: 5, failedAlike: alike{1, 4}}
	}, func(l *lane) bool { return reflect.DeepEqual(l.blame, &blame{openedEpoch: 7, bad: 5}) }},
	"latency": {"a measure of answers, for people", func(_ *Machine, l *lane) { l.latency.Observe(time.Second) }, func(l *lane) bool { return l.latency.Mean() == time.Second }},
	"refusal": {"a measure: how soon a probe would be refused", func(_ *Machine, l *lane) { l.refusal.Observe(time.Second) }, func(l *lane) bool { return l.refusal.Count() == 1 }},

	"pools":   {"who draws on it", nil, func(l *lane) bool { return len(l.pools) == 1 }},
	"onePool": {"the room of pools", nil, func(l *lane) bool { return l.onePool[0] == l.pools[0] }},
	"prev":    {"its place in the line of lanes", nil, func(l *lane) bool { return l.prev == nil }},
	"next":    {"likewise", nil, func(l *lane) bool { return l.next == nil }},
	"used":    {"nobody has", func(_ *Machine, l *lane) { l.used = spoiltAt }, func(l *lane) bool { return l.used.Equal(spoiltAt) }},
}

// After a reset nothing is held against a lane, whatever was; each of its fields is
// decided for.
func TestResetHoldsNothingAgainst(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 5}, RunConfig{})
	b.offer(1, "", 0)
	l := b.lanes[DefaultPool]
	fields := reflect.TypeFor[lane]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		switch f, decided := laneFields[name]; {
		case !decided:
			t.Errorf("nobody has decided what a reset does to lane.%s", name)
		case f.spoil != nil:
			f.spoil(b.Machine, l)
		}
	}
	b.Step(b.now, LaneReset(DefaultPool))
	for name, f := range laneFields {
		if _, there := fields.FieldByName(name); !there {
			t.Errorf("lane.%s is decided for, and is no more", name)
		} else if !f.holds(l) {
			t.Errorf("after a reset lane.%s is not as it should be: %s", name, f.why)
		}
	}
}

// What an earlier machine knew of a lane that was not used yet is not held against it
// either, once it was reset.
func TestResetForgetsAMemory(t *testing.T) {
	c := LaneConfig{Law: limiter.Plain}
	b, k := taught(t, c, 8, Outcome{Signal: Throttled, Directed: true, RetryAfter: 30 * time.Second})
	next := recalled(c, b.now, k)
	next.Step(next.now, LaneReset(DefaultPool))
	if next.offer(1, DefaultPool, 0); len(next.calls) != 1 {
		t.Errorf("the lane is %v after it was reset", next.lane().Phase)
	}
}

// A deafLaw fails its test when it hears of the end of a call.
type deafLaw struct {
	limiter.Law
	t *testing.T
}

func (l deafLaw) fail(n limiter.News) {
	l.t.Errorf("the law hears of a call that it did not let go: %+v", n)
}
func (l deafLaw) Answered(_ time.Time, n limiter.News) { l.fail(n) }
func (l deafLaw) Failed(_ time.Time, n limiter.News)   { l.fail(n) }
func (l deafLaw) Vanished(_ time.Time, n limiter.News) { l.fail(n) }
func (l deafLaw) Refused(_ time.Time, n limiter.News) (r limiter.Refusal) {
	l.fail(n)
	return r
}

func (l deafLaw) Straggled(_ time.Time, n limiter.News) (until time.Time) {
	l.fail(n)
	return until
}

// lateEnds are the ends of calls that left under another law. stops says whether such an end
// stops a lane for which nobody has vouched since.
var lateEnds = map[string]struct {
	outcome Outcome
	stops   bool
}{
	"answered":         {Outcome{Signal: Succeeded, Measured: true, Actual: limiter.Cost{Input: 1e6}}, false},
	"not to its taste": {Outcome{Signal: Answered}, false},
	"refused":          {Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute}, false},
	"refused for long": {Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Hour}, false},
	"refused by day":   {Outcome{Signal: Throttled, Unclear: true}, false},
	"busy":             {Outcome{Signal: Overloaded}, false},
	"broken":           {Outcome{Signal: Failed}, false},
	"never sent":       {Outcome{Signal: Failed, Unsent: true}, false},
	"cancelled":        {Outcome{}, false},
	"for good":         {Outcome{Signal: Exhausted}, true},
	"no such model":    {Outcome{Signal: Exhausted, Alike: 404}, false},
}

// News of calls that left before a lane was reset, or followed another law, reaches no
// law, and changes no phase; but that the provider will serve the lane no more concerns
// whatever law it follows.
func TestLateNewsReachesNoLaw(t *testing.T) {
	plain, model := LaneConfig{Law: limiter.Plain}, LaneConfig{}
	for name, end := range lateEnds {
		for _, by := range []struct {
			event   Event
			vouched bool
		}{{LaneReset(DefaultPool), true}, {LaneDefined(DefaultPool, model), false}} {
			for _, how := range []func(Grant, Outcome) Event{Settled, HandedOver} {
				b := newBed(plain, RunConfig{})
				b.offer(unclearMost, "", 100)
				b.Step(b.now, by.event)
				l := b.lanes[DefaultPool]
				l.law = deafLaw{l.law, t}
				for _, g := range b.calls {
					b.Step(b.now, how(g, end.outcome))
				}
				if stopped := end.stops && !by.vouched; (l.phase == Stopped) != stopped || !stopped && (l.phase != Flowing || l.broke || l.unclear > 0) || l.inFlight > 0 {
					t.Errorf("%s, after %v: the lane is %v, %d in flight", name, by.event, l.phase, l.inFlight)
				}
			}
		}
	}
}
