package observe

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// A story is what held a run back, one thing after the other.
type story struct {
	at       time.Time
	ledger   batch.Ledger
	holder   *holder
	reported Ledger
}

func newStory() *story { return &story{at: start, holder: newHolder(start)} }

// isState are the bounds that are states whatever else is so.
var isState = map[machine.Bound]bool{machine.BoundPaused: true, machine.BoundDraining: true, machine.BoundStopped: true, machine.BoundBreaker: true}

// spend has a bound hold the run back for some time, and tells of it every 500 ms.
func (s *story) spend(by machine.Bound, d time.Duration) {
	for ; d > 0; d -= 500 * time.Millisecond {
		step := min(d, 500*time.Millisecond)
		seen := s.ledger
		s.at = s.at.Add(step)
		s.ledger[by] += step
		s.reported.addGrowth(&seen, &s.ledger, 0)
		s.holder.judge(s.at, &s.reported, by, isState[by])
	}
}

// mix has two hold it back by turns of less than a period.
func (s *story) mix(a, b machine.Bound, share float64, d time.Duration) {
	for ; d > 0; d -= 500 * time.Millisecond {
		seen := s.ledger
		s.at = s.at.Add(500 * time.Millisecond)
		part := time.Duration(share * 5e8)
		s.ledger[a] += part
		s.ledger[b] += 5e8 - part
		s.reported.addGrowth(&seen, &s.ledger, 0)
		s.holder.judge(s.at, &s.reported, a, false)
	}
}

// The name changes when another has led the last four seconds for two, and not for
// less: five seconds after all has changed at most, the new name is said.
func TestBoundChangesSlowly(t *testing.T) {
	s := newStory()
	s.spend(machine.BoundSearch, 500*time.Millisecond)
	if h := s.holder.bottleneck(); h.By != limiter.BoundSearch || h.Share != 1 || !h.Since.Equal(start) {
		t.Fatalf("at once: %+v", h)
	}
	s.spend(machine.BoundSearch, 20*time.Second)
	s.spend(machine.BoundCooldown, 1900*time.Millisecond)
	s.spend(machine.BoundSearch, 10*time.Second)
	if h := s.holder.bottleneck(); h.By != limiter.BoundSearch || !h.Since.Equal(start) {
		t.Errorf("two seconds of something else: %+v", h)
	}
	turn := s.at
	s.spend(machine.BoundRequests, 4*time.Second)
	if h := s.holder.bottleneck(); h.By != limiter.BoundSearch {
		t.Errorf("after 4 s: %+v", h)
	}
	s.spend(machine.BoundRequests, 500*time.Millisecond)
	h := s.holder.bottleneck()
	if h.By != limiter.BoundRequests || h.Share != 1 {
		t.Errorf("after 4.5 s: %+v", h)
	}
	if since := h.Since.Sub(turn); since < 2*time.Second || since > 2500*time.Millisecond {
		t.Errorf("it leads since %v after the turn", since)
	}
}

// A second one is named from three tenths on, and never the first again.
func TestBoundNamesASecond(t *testing.T) {
	s := newStory()
	s.mix(machine.BoundTokens, machine.BoundConcurrency, 0.71, 20*time.Second)
	if h := s.holder.bottleneck(); h.By != limiter.BoundTokens || h.Second != limiter.BoundNone || !near(h.Share, 0.71) {
		t.Errorf("%+v", h)
	}
	s.mix(machine.BoundTokens, machine.BoundConcurrency, 0.69, 20*time.Second)
	if h := s.holder.bottleneck(); h.By != limiter.BoundTokens || h.Second != limiter.BoundConcurrency || !near(h.SecondShare, 0.31) {
		t.Errorf("%+v", h)
	}
}

// From three tenths exactly on, too, and of two the larger one.
func TestBoundNamesTheLargerSecond(t *testing.T) {
	s := newStory()
	s.mix(machine.BoundTokens, machine.BoundConcurrency, 0.7, 20*time.Second)
	if h := s.holder.bottleneck(); h.Second != limiter.BoundConcurrency || !near(h.SecondShare, 0.3) {
		t.Errorf("%+v", h)
	}
	for _, seconds := range [][2]machine.Bound{{machine.BoundRequests, machine.BoundConcurrency}, {machine.BoundConcurrency, machine.BoundRequests}} {
		h := newHolder(start)
		h.named = limiter.BoundTokens
		h.share[machine.BoundTokens], h.share[seconds[0]], h.share[seconds[1]] = 36, 34, 30
		if said := h.bottleneck(); said.By != limiter.BoundTokens || said.Second != seconds[0] || said.SecondShare != 0.34 {
			t.Errorf("%+v", said)
		}
	}
}

// A lead that was lost is counted anew, as is that of a rival's rival. Of equal ones the one
// that is named stays.
func TestBoundCountsALeadAnew(t *testing.T) {
	s := newStory()
	s.spend(machine.BoundSearch, 20*time.Second)
	for range 3 { // it leads for a second, and then the one that is named does again
		s.spend(machine.BoundCooldown, 2500*time.Millisecond)
		s.spend(machine.BoundSearch, 4*time.Second)
	}
	if h := s.holder.bottleneck(); h.By != limiter.BoundSearch || !h.Since.Equal(start) {
		t.Errorf("leads of a second: %+v", h)
	}
	s.spend(machine.BoundCooldown, 2500*time.Millisecond)
	if h := s.holder.bottleneck(); !near(h.Share, 1.5/4) {
		t.Errorf("a share of %v of four seconds", h.Share)
	}

	h := newHolder(start)
	h.named = 1
	for at, by := range []limiter.Bound{1, 1, 1, 3} { // the by that is named after each second
		sum := Ledger{1: 1, 2: 2, 3: 3 * time.Duration(min(at, 1))} // 2 leads, and then 3
		if h.judge(start.Add(time.Duration(at)*time.Second), &sum, machine.BoundNone, false); h.named != by {
			t.Errorf("after %d s %d is named, want %d", at, h.named, by)
		}
	}
	if !h.since.Equal(start.Add(time.Second)) {
		t.Errorf("it is named since %v", h.since.Sub(start))
	}

	for _, pair := range [][2]machine.Bound{{machine.BoundTokens, machine.BoundRequests}, {machine.BoundRequests, machine.BoundTokens}} {
		s := newStory()
		s.spend(pair[0], 20*time.Second)
		s.mix(pair[0], pair[1], 0.5, 20*time.Second)
		if h := s.holder.bottleneck(); h.By != pair[0] {
			t.Errorf("as much of both: %+v, want %s", h, pair[0])
		}
	}
}

// A state is named since it began, and not before any time has passed. A lead from before it is
// counted anew.
func TestBoundAroundAState(t *testing.T) {
	s := newStory()
	s.holder.judge(start, &Ledger{}, machine.BoundPaused, true)
	if h := s.holder.bottleneck(); h != (Bottleneck{}) {
		t.Errorf("at the very beginning: %+v", h)
	}
	s = newStory()
	s.spend(machine.BoundSearch, 20*time.Second)
	s.spend(machine.BoundCooldown, 3*time.Second) // leads for a second
	s.spend(machine.BoundPaused, 500*time.Millisecond)
	since := s.at
	s.spend(machine.BoundPaused, 500*time.Millisecond)
	if h := s.holder.bottleneck(); h.By != limiter.BoundPaused || !h.Since.Equal(since) {
		t.Errorf("paused: %+v, want since %v", h, since)
	}
	s.spend(machine.BoundSearch, time.Second)
	if h := s.holder.bottleneck(); h.By != limiter.BoundSearch {
		t.Errorf("after the pause: %+v", h)
	}
}

// A state of the run is named at once, and taken back at once, and needs no second.
func TestBoundNamesStatesAtOnce(t *testing.T) {
	for by, word := range map[machine.Bound]limiter.Bound{
		machine.BoundPaused: limiter.BoundPaused, machine.BoundDraining: limiter.BoundDraining, machine.BoundStopped: limiter.BoundStopped, machine.BoundBreaker: limiter.BoundBreaker,
	} {
		s := newStory()
		s.spend(machine.BoundRequests, 20*time.Second)
		s.spend(by, 500*time.Millisecond)
		if h := s.holder.bottleneck(); h.By != word || h.Second != limiter.BoundNone || !h.Since.Equal(s.at) {
			t.Errorf("%+v, want %s", h, word)
		}
		s.spend(machine.BoundTokens, 500*time.Millisecond)
		if h := s.holder.bottleneck(); h.By != limiter.BoundTokens {
			t.Errorf("%s is over: %+v", word, h)
		}
		s.spend(machine.BoundTokens, 20*time.Second)
		if h := s.holder.bottleneck(); h.By != limiter.BoundTokens || h.Share != 1 {
			t.Errorf("%s is long over: %+v", word, h)
		}
	}
}

// What is kept for judging does not grow, however often the run tells of itself.
func TestHolderIsBounded(t *testing.T) {
	h := newHolder(start)
	var sum Ledger
	for k := range 100_000 {
		sum[1] += time.Millisecond
		h.judge(start.Add(time.Duration(k+1)*time.Millisecond), &sum, 1, false)
	}
	if n, most := len(h.history), int(BottleneckSpan/markGap)+3; n > most {
		t.Errorf("%d marks, at most %d", n, most)
	}
	if share := h.share.Sum(); share < BottleneckSpan || share > BottleneckSpan+2*markGap {
		t.Errorf("judged over %v", share)
	}
}

// Whatever part of the concurrency is the output's, an Ledger comes to what the ledger
// does, to the nanosecond.
func TestAccountIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var seen, now batch.Ledger
		var a Ledger
		for range 50 {
			for range 3 {
				now[rng.IntN(len(now))] += time.Duration(rng.Int64N(1e12))
			}
			a.addGrowth(&seen, &now, rng.Float64()*1.2-0.1)
			seen = now
			if a.Sum() != now.Sum() {
				t.Fatalf("%v in ours, %v in the ledger", a.Sum(), now.Sum())
			}
		}
		for k, d := range a {
			if by := limiter.Bound(k); d < 0 || by != limiter.BoundOutput && by != limiter.BoundConcurrency && d != now[k] {
				t.Fatalf("%s: %v", by, d)
			}
		}
	}
}

// What was spent at the gate is the output's part of the concurrency, by the calls that
// ended in the span.
func TestOutputIsWhatWasSpentAtTheGate(t *testing.T) {
	rec := New(Config{})
	status := func(at time.Duration, concurrency time.Duration) {
		s := batch.Status{At: start.Add(at)}
		s.Run.Bound = machine.BoundConcurrency
		s.Run.Ledger[machine.BoundConcurrency] = concurrency
		s.Run.Ledger[machine.BoundTokens] = at - concurrency
		rec.event(batch.Event{Status: &s})
	}
	rec.countCall(&batch.Call{Worker: 1, Latency: 3 * time.Second, Gated: time.Second})
	rec.countCall(&batch.Call{Worker: 2, Latency: 0, Gated: 0})
	status(time.Second, 400*time.Millisecond)
	want := func(tokens, concurrency, output time.Duration) {
		t.Helper()
		l := rec.Snapshot(start).Ledger
		if l[limiter.BoundTokens] != tokens*time.Millisecond || l[limiter.BoundConcurrency] != concurrency*time.Millisecond || l[limiter.BoundOutput] != output*time.Millisecond {
			t.Errorf("%v", l)
		}
	}
	want(600, 300, 100)
	status(2*time.Second, 1200*time.Millisecond) // no call ended: as before
	want(800, 900, 300)
	rec.countCall(&batch.Call{Worker: 1, Gated: time.Second})
	status(3*time.Second, 2200*time.Millisecond)
	want(800, 900, 1300)
}
