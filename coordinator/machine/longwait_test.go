package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// until lets time pass, and looks when the machine asks for that. It gives the waits that
// were said.
func (b *bed) until(d time.Duration) (said []LongWait) {
	end := b.now.Add(d)
	for ready := b.decide(); ; ready = b.decide() {
		said = append(said, ready.LongWaits...)
		if ready.WakeAt.IsZero() || ready.WakeAt.After(end) {
			b.now = end
			return said
		}
		b.now = ready.WakeAt
	}
}

// A lane that flows and whose law lets nothing go for an hour waits: headers say that
// nothing is left until then.
func TestLongWaitOfALaneThatFlows(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{})
	b.offer(5, "", 0)
	for left := 2.0; left >= 0; left-- {
		b.until(time.Second)
		g := b.calls[0]
		b.calls = b.calls[1:]
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second, Sightings: []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 3, Window: time.Hour, Remaining: left, Reset: storyStart.Add(time.Hour).Sub(g.Item.Sent), HasReset: true,
		}}}))
	}
	said := b.until(2 * time.Hour)
	sent := b.calls[0].Item.Sent // the first that left again
	for _, lw := range said {
		t.Logf("%v, then sent %v", lw, sent.Sub(lw.At))
	}
	if len(said) != 1 || said[0].Phase != Flowing || said[0].Why != "requests" || said[0].Items != 2 {
		t.Fatalf("said %v", said)
	}
	if off := sent.Sub(said[0].Until).Abs(); off > time.Second {
		t.Errorf("a call left %v away from what was said", off)
	}
}

// The item that waits longest for a lane counts, though another is next in line. An item that
// waits for its own backoff waits for the lane as well while that lets nothing in.
func TestLongWaitOfWhoIsNotNext(t *testing.T) {
	b := newBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{})
	b.cfg.FirstAnswer = -1 // its breaker waits, as that of a lane that was answered once
	b.offer(1, "", 0)
	var said []LongWait
	for own := time.Hour; b.now.Sub(storyStart) < 20*time.Minute; own = time.Minute {
		if len(b.calls) > 0 {
			b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Failed, Latency: time.Millisecond, Directed: true, RetryAfter: own}))
			b.calls = b.calls[1:]
		}
		if own == time.Hour {
			b.until(50 * time.Second)
			b.offer(1, "", 0)
		}
		said = append(said, b.until(10*time.Second)...)
	}
	said = slices.DeleteFunc(said, func(lw LongWait) bool { return lw.Own })
	if len(said) != 1 || !said[0].Since.Equal(storyStart) || said[0].At.Sub(storyStart) != DefaultLongWait {
		t.Errorf("said %v", said)
	}
}

// A run has all its calls in flight on another lane when the wait of a lane that is ill is
// looked at. When it has room again nobody asks the lane, as it cools; it waits from then
// on at the latest, and that is said.
func TestLongWaitBehindAFullRun(t *testing.T) {
	b := newBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{Concurrency: 1})
	b.cfg.FirstAnswer = -1 // its breaker waits, as that of a lane that was answered once
	fails := func() {
		b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Failed, Latency: time.Second, Directed: true, RetryAfter: 4 * time.Minute}))
		b.calls = b.calls[1:]
	}
	b.offer(2, "ill", 0)
	fails()
	b.until(4*time.Minute + time.Second)
	b.offer(1, "well", 0)
	fails() // a probe
	said := b.until(3 * time.Minute)
	if len(said) > 0 || len(b.calls) != 1 || b.calls[0].Lane != "well" {
		t.Fatalf("said %v, calls %v", said, b.calls)
	}
	freed := b.now
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded, Latency: 3 * time.Minute}))
	b.calls = b.calls[1:]
	for b.now.Sub(freed) < 20*time.Minute {
		if said = append(said, b.until(time.Second)...); len(b.calls) > 0 {
			fails()
		}
	}
	if len(said) != 1 || said[0].Lane != "ill" || said[0].At.Sub(freed) > DefaultLongWait {
		t.Errorf("said %v, free since %v", said, freed)
	}
}

// An only item that a server which is down keeps failing waits for its lane, though it
// is never in line for it: it is being tried, or waits for its own backoff.
func TestLongWaitOfAnOnlyItem(t *testing.T) {
	b := newBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{})
	b.cfg.FirstAnswer = -1 // its breaker waits, as that of a lane that was answered once
	b.offer(1, "", 0)
	var said []LongWait
	for b.now.Sub(storyStart) < time.Hour {
		if len(b.calls) > 0 {
			b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Failed, Latency: time.Millisecond, Directed: true, RetryAfter: time.Minute}))
			b.calls = b.calls[1:]
		}
		said = append(said, b.until(time.Second)...)
	}
	if len(said) != 1 || said[0].Cause != ByBreaker || said[0].Items != 1 || said[0].At.Sub(said[0].Since) > DefaultLongWait {
		t.Errorf("said %v", said)
	}
}

// A look at the waits leaves no trace. A lane that nobody used for long is forgotten when
// something happens, and not by a look: whether waits are said may not decide that.
func TestCheckOfWaitsForgetsNoLane(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{})
	b.cfg.IdleTTL = time.Minute
	b.offer(1, "idle", 0)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded, Latency: time.Second}))
	b.offer(1, "ill", 0)
	b.offer(3, "ill", 0)
	b.Step(b.now, HandedOver(b.calls[1], Outcome{Signal: Throttled, Latency: time.Second}))
	b.until(time.Minute / 2) // the probe is under way, and nothing more will happen by itself
	if said := b.until(DefaultLongWait); len(said) != 1 || b.lanes["idle"] == nil {
		t.Errorf("said %v; the idle lane is there: %v", said, b.lanes["idle"] != nil)
	}
	if b.now = b.now.Add(2 * DefaultLongWait); b.lanes["idle"] != nil {
		b.offer(1, "ill", 0)
	}
	if b.lanes["idle"] != nil {
		t.Error("the idle lane was never forgotten")
	}
}

// Nobody waits for a fallback that is ill while the lane before it is well, however slowly
// that one lets calls go.
func TestFallbackThatIsNotNeededDoesNotWait(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 30}},
		RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"main", "spare"}, Tiers: each(2)}}})
	b.Step(b.now, LaneDefined("spare", LaneConfig{Law: limiter.Plain, Window: 1})) // of which no level is known
	b.offer(1000, "p", 0)
	b.end(0, Outcome{Signal: Throttled, Directed: true, RetryAfter: 2 * time.Second})
	b.end(0, Outcome{Signal: Throttled, Directed: true, RetryAfter: 10 * time.Second})
	for b.now.Sub(storyStart) < 20*time.Minute {
		for _, g := range b.calls {
			b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Millisecond}))
		}
		b.calls = nil
		if said := b.until(time.Second); len(said) > 0 {
			t.Fatalf("said %v", said)
		}
	}
	if p := b.lanes["spare"].phase; p != Probing || b.Waiting() == 0 {
		t.Errorf("the fallback is %v, and %d items wait", p, b.Waiting())
	}
}
