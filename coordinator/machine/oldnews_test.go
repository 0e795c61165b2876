package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// What the end of a call says that left in an epoch before: nothing of now.

// endOf ends the call of an item, and looks at what follows.
func (b *bed) endOf(t *testing.T, seq uint64, how func(Grant, Outcome) Event, o Outcome) []Transition {
	t.Helper()
	for i, g := range b.calls {
		if g.Item.Seq == seq {
			b.calls = append(b.calls[:i:i], b.calls[i+1:]...)
			b.Step(b.now, how(g, o))
			return append([]Transition(nil), b.decide().Transitions...)
		}
	}
	t.Fatalf("item %d is not in flight", seq)
	return nil
}

// probing is a lane of either law whose breaker has opened while calls 0 and 1 were in
// flight, and whose probe is out.
func probing(t *testing.T, law limiter.LawName) (*bed, *lane) {
	t.Helper()
	b := newBed(LaneConfig{
		Law: law, Limits: limiter.Limits{RPM: 60_000, Burst: time.Minute},
		Breaker: limiter.BreakerConfig{Consecutive: 3, OpenFor: time.Second},
	}, RunConfig{})
	b.offer(6, "", 0) // so that three in a row are as many as are left under way
	for len(b.calls) < 6 {
		b.wait(100 * time.Millisecond)
	}
	for seq := uint64(2); seq < 5; seq++ {
		b.endOf(t, seq, HandedOver, Outcome{Signal: Failed})
	}
	l := b.lanes[DefaultPool]
	if l.phase != Cooling || l.breaker.State(b.now) != limiter.Open {
		t.Fatalf("after three failures the lane is %v, its breaker %v", l.phase, l.breaker.State(b.now))
	}
	for i := 0; l.phase == Cooling || l.inEpoch == 0; i++ {
		if i == 100 {
			t.Fatal("no probe leaves")
		}
		b.wait(100 * time.Millisecond)
	}
	return b, l
}

// The answer to a call from before an outage is no sign of its end: the lane goes on
// probing, with its breaker open a crack, and one call at a time; so it is with what failed
// then. Only the probe's own answer ends it.
func TestOldNewsEndsNoProbe(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Model, limiter.Plain} {
		b, l := probing(t, law)
		epoch, waves := l.epoch, l.escalation(b.now)
		b.endOf(t, 0, Settled, Outcome{Signal: Succeeded, Latency: time.Minute})
		b.endOf(t, 1, HandedOver, Outcome{Signal: Failed})
		b.endOf(t, 5, HandedOver, Outcome{Signal: Throttled})
		b.wait(time.Second)
		if l.phase != Probing || l.breaker.State(b.now) != limiter.HalfOpen || l.inEpoch != 1 || l.epoch != epoch {
			t.Errorf("%v: after old news the lane is %v in epoch %d of %d, its breaker %v, %d calls in flight",
				law, l.phase, l.epoch, epoch, l.breaker.State(b.now), l.inEpoch)
		}
		if is := l.escalation(b.now); is > waves {
			t.Errorf("%v: %d waves by old news, %d before", law, is, waves)
		}
		b.endOf(t, b.calls[len(b.calls)-1].Item.Seq, Settled, Outcome{Signal: Succeeded, Latency: time.Second})
		if l.phase == Probing || l.breaker.State(b.now) != limiter.Closed {
			t.Errorf("%v: the probe was answered, and the lane is %v, its breaker %v", law, l.phase, l.breaker.State(b.now))
		}
	}
}

// The participants of a cooldown are the calls that met its refusals: the first, and those
// that left before it and are refused while it lasts. Who left two cooldowns ago is none,
// nor who is refused when it is over.
func TestParticipantsOfACooldown(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(7, "", 0)
	refused, l := Outcome{Signal: Throttled}, b.lanes[DefaultPool]
	wave := func(when string, most int, all uint64) {
		t.Helper()
		c := b.RunCounters(1)
		if int(l.wave) != most || l.counts[participants] != all || b.totals[participants] != all || c.Participants != all {
			t.Errorf("%s: a wave of %d, %d participants of the lane, %d of the run, %d in all; want %d, %d",
				when, l.wave, l.counts[participants], c.Participants, b.totals[participants], most, all)
		}
	}
	b.endOf(t, 0, HandedOver, refused)
	wave("the first refusal", 1, 1)
	b.endOf(t, 1, HandedOver, refused)
	b.endOf(t, 2, HandedOver, Outcome{Signal: Overloaded})
	b.endOf(t, 3, HandedOver, Outcome{Signal: Failed})
	wave("two more of the same wave, and one that broke", 3, 3)
	b.wait(time.Second)
	b.endOf(t, 4, HandedOver, refused)
	wave("one while the lane is probed", 3, 3)
	reported := b.endOf(t, 0, HandedOver, refused)
	wave("the probe is refused", 1, 4)
	if len(reported) != 1 || reported[0].Wave != 1 {
		t.Errorf("a transition tells of %v", reported)
	}
	b.endOf(t, 5, HandedOver, refused)
	wave("one of two cooldowns ago", 1, 4)
	for l.phase != Probing {
		b.wait(time.Second)
	}
	if reported := b.endOf(t, b.calls[len(b.calls)-1].Item.Seq, Settled, Outcome{Signal: Succeeded}); len(reported) != 1 || reported[0].Wave != 1 {
		t.Errorf("a transition tells of %v", reported)
	}
	if c := b.RunCounters(1); c.Cooldowns != 2 || c.Stragglers != 4 || c.Throttled != 6 {
		t.Errorf("%+v", c)
	}
}

// A probe that is not refused has passed after twice the time that a refusal takes, two
// seconds where none was seen, and a tenth of one at least; until then nobody follows it,
// and after it everybody does. Where nothing was ever answered it must be answered.
func TestProbePassesInTime(t *testing.T) {
	for _, c := range []struct {
		name     string
		answered bool
		refusal  time.Duration // latency of the refusal before it; 0: not measured
		want     time.Duration // 0: never
	}{
		{"refusals of 400 ms", true, 400 * time.Millisecond, 800 * time.Millisecond},
		{"refusals of 1 ms", true, time.Millisecond, MinProbeWait},
		{"refusals not measured", true, 0, ProbeWait},
		{"nothing was answered", false, 400 * time.Millisecond, 0},
	} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(20, "", 0)
		l := b.lanes[DefaultPool]
		if c.answered {
			b.endOf(t, 19, Settled, Outcome{Signal: Succeeded, Latency: 10 * time.Second})
		}
		b.endOf(t, 0, HandedOver, Outcome{Signal: Throttled, Latency: c.refusal})
		b.wait(time.Second)
		if l.phase != Probing || l.inEpoch != 1 {
			t.Fatalf("%s: %v, %d in flight", c.name, l.phase, l.inEpoch)
		}
		if c.want == 0 {
			if b.wait(time.Hour); l.phase != Probing {
				t.Errorf("%s: a probe has passed that was not answered", c.name)
			}
			continue
		}
		if b.wait(c.want - 1); l.phase != Probing {
			t.Errorf("%s: it has passed before %v", c.name, c.want)
		}
		if b.wait(1); l.phase != Ramping {
			t.Errorf("%s: it is %v after %v", c.name, l.phase, c.want)
		}
	}
}

// A probe that says nothing (it was cancelled) neither passes nor refuses: its time is void,
// and the next one has its own.
func TestCancelledProbeDoesNotPass(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(3, "", 0)
	l := b.lanes[DefaultPool]
	b.endOf(t, 2, Settled, Outcome{Signal: Succeeded})
	b.endOf(t, 0, HandedOver, Outcome{Signal: Throttled, Latency: time.Second})
	b.wait(time.Second)
	b.wait(1900 * time.Millisecond)
	b.endOf(t, 0, Settled, Outcome{}) // cancelled; nobody else waits
	if b.wait(time.Minute); l.phase != Probing || !l.passAt.IsZero() || l.alarm.pos >= 0 {
		t.Fatalf("the lane is %v, to be passed at %v", l.phase, l.passAt)
	}
	b.offer(1, "", 0)
	if b.wait(1900 * time.Millisecond); l.phase != Probing {
		t.Error("the next probe has passed by the time of the one before it")
	}
	if b.wait(100 * time.Millisecond); l.phase != Ramping {
		t.Errorf("the lane is %v after two seconds of the next one", l.phase)
	}
}
