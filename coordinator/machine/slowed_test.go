package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// slowedBed has served calls for 20 seconds, of which more than three in ten break.
func slowedBed(t *testing.T, law limiter.LawName) *bed {
	b := newBed(LaneConfig{Law: law, Limits: limiter.Limits{RPM: 600}}, RunConfig{})
	b.offer(2000, "", 0)
	for i := range 200 {
		o := Outcome{Signal: Succeeded}
		if i%5 < 2 {
			o.Signal = Failed
		}
		b.wait(100 * time.Millisecond)
		if len(b.calls) > 0 {
			b.end(0, o)
		}
		if b.Status(b.now, 1).Lanes[0].Slowed > 0 {
			return b
		}
	}
	t.Fatalf("%v: the lane was never slowed down", law)
	return nil
}

// A lane that is slowed down because its calls break says so, and why: in its picture and
// by a transition that leaves its phase as it is. When it is restored, be it by time
// alone, it says so before a call leaves at the pace that it had before.
func TestSlowedLaneSaysSo(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Model, limiter.Plain} {
		b := slowedBed(t, law)
		l := b.Status(b.now, 1).Lanes[0]
		if l.Slowed != 0.5 || l.Errors <= 0.3 || l.Phase != Flowing || l.Why != "errors" || l.Speed != ClientThrottled || l.Rate > 6 {
			t.Errorf("%v: %+v", law, l)
		}
		if l.View.Binds.By != limiter.BoundErrors || l.View.Binds.Pace > 6 {
			t.Errorf("%v: bound by %v", law, l.View.Binds)
		}
		last := b.said[len(b.said)-1]
		if last.Reason != ByErrors || last.From != Flowing || last.To != Flowing || last.Slowed != 0.5 || last.Errors <= 0.3 || last.Span != time.Minute {
			t.Errorf("%v: %v", law, last)
		}
		for range b.calls {
			b.end(0, Outcome{})
		}
		before, sent := len(b.said), len(b.calls)
		b.wait(3 * time.Minute)
		if len(b.said) != before+1 || len(b.calls) == sent {
			t.Fatalf("%v: %d transitions, %d calls", law, len(b.said)-before, len(b.calls)-sent)
		}
		if last := b.said[before]; last.Reason != ByAnswers || last.Slowed != 0 || last.Errors != 0 || last.To != Flowing {
			t.Errorf("%v: %v", law, last)
		}
	}
}

// A person who vouches for a lane has nothing held against it.
func TestResetLaneIsNotSlowed(t *testing.T) {
	b := slowedBed(t, limiter.Model)
	b.Step(b.now, LaneReset(DefaultPool))
	b.decide()
	if l := b.Status(b.now, 1).Lanes[0]; l.Slowed != 0 || l.Errors != 0 {
		t.Errorf("%+v", l)
	}
	if last := b.said[len(b.said)-1]; last.Reason != ByHand {
		t.Errorf("%v", last)
	}
	b.wait(3 * time.Minute)
	if last := b.said[len(b.said)-1]; last.Reason != ByHand {
		t.Errorf("%v", last)
	}
}

// The error window's thresholds are checked with the lane's.
func TestErrorWindowIsValidated(t *testing.T) {
	if err := (LaneConfig{Errors: limiter.ErrorWindowConfig{High: 2}}).Validate(); err == nil {
		t.Error("a share of 2 is accepted")
	}
}

// An outage of ten seconds costs no minute at half speed: soon after it calls leave as fast
// as before it, under either law.
func TestShortOutageIsNotAHalvedMinute(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Model, limiter.Plain} {
		for _, breaks := range []int{20, 15} { // of twenty: the server is down, or nearly
			s := newStory(t, Config{Lane: LaneConfig{Law: law, Limits: limiter.Limits{RPM: 600}}})
			s.m.Step(s.now, RunOpened(1, RunConfig{}))
			for range 4000 {
				it := &Item{Seq: s.next}
				s.items[it.Seq] = it
				s.next++
				s.m.Step(s.now, Offered(1, []*Item{it}))
			}
			s.pass()
			serve := func(span time.Duration, breaks int) *storyServer {
				server := &storyServer{latency: 500 * time.Millisecond, breaks: breaks, refused: map[uint64]bool{}, broken: map[uint64]bool{}}
				if s.server != nil {
					server.broken, server.calls = s.server.broken, s.server.calls
				}
				s.sent = 0
				s.serve(span, span, server)
				return server
			}
			serve(90*time.Second, 0)
			serve(10*time.Second, breaks)
			serve(20*time.Second, 0) // the rest of the breaker's interval, and the ramp
			from := s.m.totals[calls]
			serve(10*time.Second, 0)
			if got := s.m.totals[calls] - from; got < 95 {
				t.Errorf("%v, %d of 20 break: %d calls left in ten seconds, 100 before", law, breaks, got)
			}
			if l := s.m.Status(s.now, 1).Lanes[0]; l.Slowed > 0 {
				t.Errorf("%v, %d of 20 break: slowed down, as %.1f %% broke", law, breaks, 100*l.Errors)
			}
		}
	}
}
