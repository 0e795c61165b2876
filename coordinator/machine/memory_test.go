package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A lane that cools is not forgotten, however long nobody asks for it: who came
// back to it as to a new one would be refused again.
func TestCoolingLaneIsRemembered(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.cfg.IdleTTL = time.Minute
	b.offer(1, "", 0)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Minute}))
	b.wait(2 * time.Minute)
	b.offer(1, "", 0)
	if len(b.calls) != 1 {
		t.Fatal("a call left while the lane cooled")
	}
	b.wait(3 * time.Minute)
	if len(b.calls) != 2 {
		t.Error("no call left after the lane had cooled")
	}
}

// A lane is not forgotten while something of a configured limit is used up: a limit of one call an
// hour holds, however often somebody looks.
func TestLaneThatOwesIsRemembered(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Plain, limiter.Model} {
		for name, limits := range map[string]limiter.Limits{
			"one an hour":          {RPM: 1.0 / 60},
			"one token an hour":    {TPM: 1.0 / 60},
			"a burst of a minute":  {RPM: 1.0 / 60, Burst: time.Minute},
			"one of input an hour": {InputTPM: 1.0 / 60},
		} {
			b := newBed(LaneConfig{Law: law, Limits: limits}, RunConfig{Total: 24})
			made := 0
			for range 24 {
				b.Step(b.now, Offered(1, []*Item{{Cost: limiter.Cost{Requests: 1, Input: 1}}}))
				for range 20 {
					b.decide()
					for _, g := range b.calls {
						b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
					}
					made += len(b.calls)
					b.calls = nil
					b.wait(time.Minute)
					b.Status(b.now, 1)
					b.SaveLanes(b.now)
				}
			}
			if made < 7 || made > 9 {
				t.Errorf("law %v, %s: %d calls in eight hours", law, name, made)
			}
		}
	}
}

// A lane that waits for a probe which nobody sends is forgotten in the end, and a
// stopped one never: why it stopped is all that keeps its items from being tried.
func TestIdleLanesAreForgotten(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(1, "probing", 0)
	b.offer(1, "stopped", 0)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Throttled}))
	b.Step(b.now, Settled(b.calls[1], Outcome{Signal: Exhausted}))
	b.wait(time.Minute)
	b.wait(DefaultIdleTTL)
	if b.lanes["probing"] != nil || b.lanes["stopped"] == nil {
		t.Errorf("known: %v", b.lanes)
	}
	if pools := b.runs[1].opened; len(pools) != 1 || pools[0].name != "stopped" {
		t.Errorf("the run has %d pools open, want the one of the stopped lane", len(pools))
	}
}

// Many lanes that were last used together are forgotten over some passes, so that
// no pass takes long.
func TestForgettingIsBounded(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	for i := range 2*maxEvictions + 1 {
		b.offer(1, string(rune('a'+i)), 0)
		b.Step(b.now, Settled(b.calls[i], Outcome{Signal: Succeeded}))
	}
	b.now = b.now.Add(DefaultIdleTTL)
	for _, want := range []int{maxEvictions + 1, 1, 0} {
		if b.decide(); len(b.lanes) != want {
			t.Fatalf("%d lanes are left, want %d", len(b.lanes), want)
		}
	}
}

// A call from before the bucket was emptied gives back nothing, whatever it did not
// need; what it drew beyond the estimate is owed all the same.
func TestOldCallsCreditNothing(t *testing.T) {
	for _, c := range []struct{ actual, level float64 }{{100, 0}, {1500, -500}} {
		b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{TPM: 60000, Burst: 10 * time.Second}}, RunConfig{})
		b.offer(2, "", 1000)
		b.end(0, Outcome{Signal: Throttled})
		b.end(0, Outcome{Signal: Succeeded, Measured: true, Actual: limiter.Cost{Input: c.actual}})
		if got := b.Status(b.now, 1).Lanes[0].Level.Tokens; got != c.level {
			t.Errorf("drew %v of 1000 estimated: %v tokens left, want %v", c.actual, got, c.level)
		}
	}
}

// An end that is reported twice is one end, also when the item waits for its release in
// between: then nobody has the item, and nobody can end it.
func TestEndReportedTwiceIsOneEnd(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 1})
	b.offer(2, "", 0)
	b.Step(b.now, Drained(1))
	for range 2 {
		b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Throttled}))
	}
	for range 2 {
		grants := b.decide().Grants
		if len(grants) != 1 || grants[0].Verdict != EndDrained {
			t.Fatalf("grants %v, want one end", grants)
		}
		b.Step(b.now, Settled(grants[0], Outcome{}))
	}
	if c := b.RunCounters(1); !c.Proves() || c.Released != 2 || b.totals[dropped] != 1 {
		t.Errorf("%+v, %d dropped", c, b.totals[dropped])
	}
}

// A pause gives up what the run was promised: the other runs need not wait for it.
func TestPauseKeepsNoPromise(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{TPM: 6000, Burst: 50 * time.Second}}, RunConfig{})
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.offer(1, "", 5000) // all that the bucket holds
	b.offer(1, "", 5000) // waits for 50 s
	b.Step(b.now, Offered(2, []*Item{{Cost: limiter.Cost{Input: 100}}}))
	b.wait(2 * time.Second)
	if len(b.calls) != 1 {
		t.Fatal("the large item was overtaken")
	}
	b.Step(b.now, Paused(1))
	if b.decide(); len(b.calls) != 2 || b.calls[1].Run != 2 {
		t.Errorf("%d calls, want one of the run that is not paused", len(b.calls))
	}
}

// A lane that was answered in an earlier process is not stopped by the first refused key: that
// is rather about one item, whatever law has learned meanwhile.
func TestRecalledLaneWasAnswered(t *testing.T) {
	refused := Outcome{Signal: Exhausted, Cause: errors.New("no such key"), First: 1, Later: 5, Alike: 7}
	for _, law := range []limiter.LawName{limiter.Plain, limiter.Model} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(1, "", 0)
		b.end(time.Second, Outcome{Signal: Succeeded})
		memory := b.SaveLanes(b.now)
		for name, keeps := range map[string]bool{"with its memory": true, "without": false} {
			next := &bed{Machine: New(Config{Lane: LaneConfig{Law: law}}), now: b.now}
			if keeps {
				for lane, k := range memory {
					next.remember(lane, k)
				}
			}
			next.Step(next.now, RunOpened(1, RunConfig{}))
			next.offer(3, "", 0)
			next.end(time.Second, refused)
			if stopped := next.Status(next.now, 1).Lanes[0].Phase == Stopped; stopped == keeps {
				t.Errorf("law %v %s: stopped is %v", law, name, stopped)
			}
		}
	}
}
