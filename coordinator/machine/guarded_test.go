package machine

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// ownLaw is the lane's law as its maker made it.
func (l *lane) ownLaw() limiter.Law {
	if f, guarded := l.law.(*guardedLaw); guarded {
		return f.law
	}
	return l.law
}

// hollow is a law that panics whatever it is asked.
type hollow struct {
	Leader
	limiter.Listener
	limiter.Speaker
}

// A panic in any method of a law is caught, and from then on nobody asks that law.
func TestGuardedLawCatchesEveryMethod(t *testing.T) {
	methods := reflect.TypeFor[interface {
		Leader
		limiter.Listener
		limiter.Speaker
	}]()
	for i := range methods.NumMethod() {
		method := methods.Method(i)
		if !method.IsExported() {
			continue
		}
		m := New(Config{})
		f := &guardedLaw{machine: m, lane: &lane{name: "bad"}, law: hollow{}}
		call := reflect.ValueOf(f).MethodByName(method.Name)
		args := make([]reflect.Value, method.Type.NumIn())
		for k := range args {
			args[k] = reflect.Zero(method.Type.In(k))
		}
		for range 2 {
			call.Call(args)
		}
		if f.fault == nil || f.fault.Value == nil || !bytes.Contains(f.fault.Stack, []byte(method.Name)) || len(m.faulty) != 1 {
			t.Errorf("%s: %v, and %d lanes are to stop", method.Name, f.fault, len(m.faulty))
		}
		if wait, _ := f.Wait(storyStart, limiter.Cost{}); wait != limiter.UntilNotified || f.ProbeWait(storyStart, limiter.Cost{}) != limiter.UntilNotified {
			t.Errorf("%s: a call may leave in %v", method.Name, wait)
		}
	}
}

// A trap is a maker, whose laws panic in one method.
type trap struct {
	at    string // the method; "NewLaw" is the maker's own, "" none, "nil" has it make no law
	leads bool
}

func (x *trap) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	x.asked("NewLaw")
	switch {
	case x.at == "nil":
		return nil
	case x.leads:
		return trapLeader{trapLaw{trap: x}}
	}
	return trapLaw{trap: x}
}

var errTrap = errors.New("sprung")

func (x *trap) asked(method string) {
	if x.at == method {
		panic(errTrap)
	}
}

type trapLaw struct {
	limiter.Unlimited
	*trap
}

func (l trapLaw) Tick(time.Time, bool)             { l.asked("Tick") }
func (l trapLaw) Answered(time.Time, limiter.News) { l.asked("Answered") }
func (l trapLaw) Failed(time.Time, limiter.News)   { l.asked("Failed") }
func (l trapLaw) Remaining(limiter.Cost)           { l.asked("Remaining") }
func (l trapLaw) Wait(time.Time, limiter.Cost) (wait time.Duration, by limiter.Bound) {
	l.asked("Wait")
	return wait, by
}

func (l trapLaw) Sent(time.Time, limiter.Cost, int) (k limiter.Ticket) {
	l.asked("Sent")
	return k
}

func (l trapLaw) Refused(time.Time, limiter.News) limiter.Refusal {
	l.asked("Refused")
	return limiter.Refusal{Alone: true}
}

func (l trapLaw) Window(time.Time) int {
	l.asked("Window")
	return 0
}

func (l trapLaw) SetLimits(time.Time, limiter.Limits) { l.asked("SetLimits") }
func (l trapLaw) View(now time.Time, c limiter.Cost) limiter.View {
	l.asked("View")
	return l.Unlimited.View(now, c)
}

func (l trapLaw) Slowed(time.Time) float64 {
	l.asked("Slowed")
	return 0
}

func (l trapLaw) Save(time.Time) (k limiter.Memory) {
	l.asked("Save")
	return k
}

func (l trapLaw) Hear(time.Time, any) (r limiter.Reply) {
	l.asked("Hear")
	return r
}

func (l trapLaw) Say(time.Time, limiter.Upcoming) (any, time.Time) {
	l.asked("Say")
	return nil, time.Time{}
}

type trapLeader struct{ trapLaw }

func (l trapLeader) Ended(time.Time, limiter.Ticket, Outcome) { l.asked("Ended") }

// trapped runs three items on a lane whose law is a trap, three on one that is well, and three
// in a pool of both. It answers the machine after that, when the run goes on, and why items
// were released.
func trapped(t *testing.T, x *trap) (*bed, map[uint64]error) {
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"bad": {Maker: x}}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Concurrency: 4, Pools: []PoolConfig{{Name: "both", Lanes: []string{"bad", "good"}}}}))
	for i, pool := range []string{"bad", "good", "both", "bad", "good", "both", "bad", "good", "both"} {
		b.Step(b.now, Offered(1, []*Item{{Seq: uint64(i), Pool: pool}}))
	}
	released, ended := map[uint64]error{}, 0
	ends := []Outcome{{Signal: Throttled}, {Signal: Failed}}
	for range 100 {
		b.decide()
		calls := b.calls
		b.calls = nil
		for _, g := range calls {
			if g.Verdict != Call {
				released[g.Item.Seq] = g.Cause
			}
			if g.Lane == "bad" && ended < len(ends) {
				b.Step(b.now, HandedOver(g, ends[ended]))
				ended++
				continue
			}
			b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
		}
		b.Status(b.now, 9)
		b.SaveLanes(b.now)
		b.Step(b.now, Delivered("bad", 1))
		b.Step(b.now, LimitsChanged("bad", limiter.Limits{RPM: 600}))
		b.now = b.now.Add(time.Second)
	}
	if c := b.RunStatus(1).Counters; c.Offered != 9 || c.Settled+c.Released != 9 || c.Calls != c.Settled+c.HandedOver || b.Waiting() != 0 {
		t.Errorf("the sums: %+v, %d held", c, b.Waiting())
	}
	return b, released
}

// Where a law of another package panics, or its maker does or makes none, its lane stops and
// says so. What can go on another lane does, other lanes notice nothing, and a reset by hand
// begins with another law.
func TestGuardedLawStopsItsLaneAlone(t *testing.T) {
	methods := []string{
		"nil", "NewLaw", "Tick", "Wait", "Sent", "Window", "Remaining", "Answered", "Failed", "Refused", "SetLimits", "View", "Slowed", "Save", "Hear", "Say", "Ended",
	}
	for _, method := range methods {
		for _, leads := range []bool{false, true} {
			never := leads && (method == "Answered" || method == "Failed" || method == "Refused" || method == "Slowed") || !leads && method == "Ended"
			if never {
				continue
			}
			x := &trap{method, leads}
			b, released := trapped(t, x)
			for seq := range uint64(9) {
				if seq%3 != 0 && released[seq] != nil {
					t.Errorf("%s, leads %v: item %d was released: %v", method, leads, seq, released[seq])
				}
			}
			lanes := map[string]LaneStatus{}
			for _, l := range b.Status(b.now, 9).Lanes {
				lanes[l.Name] = l
			}
			var law *LawError
			bad := lanes["bad"]
			if bad.Phase != Stopped || !errors.Is(bad.Cause, ErrLaw) || !errors.As(bad.Cause, &law) || law.Lane != "bad" || errors.Is(bad.Cause, errTrap) != (method != "nil") {
				t.Errorf("%s, leads %v: the lane is %v: %v", method, leads, bad.Phase, bad.Cause)
			}
			if (method == "nil") != (law.Value == nil) || method != "nil" && !bytes.Contains(law.Stack, []byte("asked")) {
				t.Errorf("%s: it panicked with %v at %s", method, law.Value, law.Stack)
			}
			if lanes["good"].Phase != Flowing {
				t.Errorf("%s: the other lane is %v", method, lanes["good"].Phase)
			}
			x.at = ""
			b.Step(b.now, LaneReset("bad"))
			b.Step(b.now, Offered(1, []*Item{{Seq: 9, Pool: "bad"}}))
			b.decide()
			if len(b.calls) != 1 || b.calls[0].Lane != "bad" {
				t.Errorf("%s, leads %v: after a reset %v leave", method, leads, b.calls)
			}
		}
	}
}

// A run whose only lane has such a law is stranded, with that for its cause, in the very
// decision that finds it out.
func TestGuardedLawStrandsARun(t *testing.T) {
	for _, method := range []string{"nil", "NewLaw", "Wait", "Sent", "Say"} {
		b := newBed(LaneConfig{Law: limiter.Model, Maker: &trap{at: method}}, RunConfig{})
		b.Step(b.now, Offered(1, []*Item{{}}))
		ready := b.Ready(b.now)
		if len(ready.Stranded) != 1 || !errors.Is(ready.Stranded[0].Cause, ErrLaw) || len(ready.Grants) != 1 {
			t.Errorf("%s: %+v", method, ready)
		}
		if again := b.Ready(b.now); len(again.Grants)+len(again.Transitions)+len(again.Stranded) > 0 {
			t.Errorf("%s: a second look finds %+v", method, again)
		}
	}
}

// An item whose pool falls back on another lane goes there in the decision in which the law of
// the first one fails.
func TestGuardedLawHasPoolsFallBack(t *testing.T) {
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"bad": {Maker: &trap{at: "Wait"}}}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "both", Lanes: []string{"bad", "good"}, Tiers: each(2)}}}))
	b.offer(1, "both", 0)
	if len(b.calls) != 1 || b.calls[0].Lane != "good" {
		t.Errorf("%v", b.calls)
	}
}

// A law that fails as its lane is looked at to be forgotten is forgotten with it.
func TestGuardedLawOfAForgottenLane(t *testing.T) {
	x := &trap{}
	b := &bed{Machine: New(Config{IdleTTL: time.Minute, Lane: LaneConfig{Maker: x}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	b.offer(1, "", 0)
	b.settleAll()
	b.now, x.at = b.now.Add(time.Hour), "View"
	if ready := b.decide(); len(ready.Transitions) > 0 || len(b.lanes) > 0 {
		t.Errorf("%v", ready.Transitions)
	}
	x.at = ""
	b.offer(1, "", 0)
	if len(b.calls) != 1 || b.calls[0].Verdict != Call {
		t.Errorf("after that: %v", b.calls)
	}
}

// A lane that has another law by the time that it would be stopped goes on.
func TestGuardedLawThatWasReplaced(t *testing.T) {
	x := &trap{}
	b := newBed(LaneConfig{Law: limiter.Model, Maker: x}, RunConfig{})
	b.offer(1, "", 0)
	x.at = "Hear"
	b.Step(b.now, Delivered(DefaultPool, 1))
	x.at = ""
	b.Step(b.now, LaneReset(DefaultPool))
	if b.decide(); b.phase() != Flowing {
		t.Errorf("it is %v", b.phase())
	}
}
