package coordinator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Transitions that a run does not read are dropped and counted, and slow nothing.
func TestUnreadNewsIsDroppedAndCounted(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		s.Settle(<-s.Work(), ok)
		for range newsSize + 44 {
			c.ResetLane(machine.DefaultPool) // each is a transition
		}
		finish(s)
		read := 0
		for range s.News() {
			read++
		}
		if _, missed := s.Final(); read != newsSize || missed != 44 {
			t.Errorf("%d read, %d missed", read, missed)
		}
	})
}

// Two runs that use one lane share its window and its cooldown, and take turns.
func TestTwoSessionsShareALane(t *testing.T) {
	lane := exact
	lane.Window = 2
	inBubble(t, Config{Machine: machine.Config{Lane: lane}}, func(t *testing.T, c *Coordinator) {
		a, b := open(t, c, machine.RunConfig{}), open(t, c, machine.RunConfig{})
		a.Offer(items(10, ""))
		b.Offer(items(10, ""))
		outA, outB := granted(a), granted(b)
		if len(outA)+len(outB) != 2 {
			t.Fatalf("%d and %d calls in a window of 2", len(outA), len(outB))
		}
		begun := time.Now()
		for _, g := range outA {
			a.HandOver(g, within(time.Minute))
		}
		for _, g := range outB {
			b.HandOver(g, within(time.Minute))
		}
		synctest.Wait()
		if len(granted(a))+len(granted(b)) > 0 {
			t.Error("calls left while the lane cooled for the other run")
		}
		done := make(chan machine.Counters, 2)
		go func() { done <- finish(a) }()
		go func() { done <- finish(b) }()
		n, m := <-done, <-done
		if took := time.Since(begun); took < time.Minute {
			t.Errorf("both were over after %v", took)
		}
		if !n.Proves() || !m.Proves() || n.Calls+m.Calls != 22 || n.Cooldowns != 1 || m.Cooldowns != 1 {
			t.Errorf("%+v\n%+v", n, m)
		}
	})
}

// A run that lost its last lane hears of it, with the cause, and its waiting items come back
// with it.
func TestStranded(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		empty := errors.New("balance used up")
		s := open(t, c, machine.RunConfig{Concurrency: 1})
		s.Offer(items(3, ""))
		g := <-s.Work()
		if isClosed(s.Stranded()) {
			t.Fatal("stranded from the start")
		}
		s.HandOver(g, machine.Outcome{Signal: machine.Exhausted, Cause: empty})
		<-s.Stranded()
		if !errors.Is(s.Cause(), empty) {
			t.Error(s.Cause())
		}
		s.EndInput()
		for g := range s.Work() {
			if g.Verdict != machine.EndStopped || !errors.Is(g.Cause, empty) {
				t.Errorf("%v: %v", g, g.Cause)
			}
			s.Settle(g, machine.Outcome{})
		}
		n, _ := s.Final()
		proves(t, n, 3, 1)
	})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// An item that is handed over twice by one grant goes out once: the second news is
// dropped and counted.
func TestHandOverSentTwiceIsGrantedOnce(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		s.Offer(items(1, ""))
		g := <-s.Work()
		s.HandOver(g, ok)
		s.HandOver(g, ok)
		out := granted(s)
		if len(out) != 1 {
			t.Fatalf("%d grants of one item", len(out))
		}
		s.HandOver(g, ok) // once more, while the new grant is out
		if more := granted(s); len(more) > 0 {
			t.Fatalf("news of an old grant gave the item out again")
		}
		s.Settle(g, ok) // of the first grant, late
		s.Settle(out[0], ok)
		proves(t, finish(s), 1, 2)
		if st, err := c.Status(t.Context(), 1); err != nil || st.Totals.Dropped != 3 {
			t.Errorf("%v %+v", err, st.Totals)
		}
	})
}

// A withdrawn item ends without a call, and one that flies by its own end.
func TestWithdraw(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 1})
		all := items(3, "")
		s.Offer(all)
		flying := <-s.Work()
		s.Withdraw(all[2])
		s.Withdraw(all[0])
		s.HandOver(flying, ok)
		s.EndInput()
		verdicts := map[uint64]machine.Verdict{}
		for g := range s.Work() {
			verdicts[g.Item.Seq] = g.Verdict
			s.Settle(g, ok)
		}
		if verdicts[0] != machine.EndWithdrawn || verdicts[1] != machine.Call || verdicts[2] != machine.EndWithdrawn {
			t.Errorf("%v", verdicts)
		}
	})
}

// A withdrawal is heard whether it comes before the offer, at the same time as it from
// another goroutine, or after it.
func TestWithdrawCrossesTheOffer(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 1})
		all := items(100, "")
		s.Withdraw(all[1]) // before
		go func() {
			for _, it := range all[2:] {
				s.Withdraw(it)
			}
		}()
		for _, it := range all {
			s.Offer([]*machine.Item{it})
		}
		synctest.Wait()
		s.EndInput()
		first := <-s.Work()
		s.Settle(first, ok)
		calls, withdrawn := 1, 0
		for g := range s.Work() {
			if g.Verdict == machine.EndWithdrawn {
				withdrawn++
			} else {
				calls++
			}
			s.Settle(g, ok)
		}
		n, _ := s.Final()
		proves(t, n, 100, 1)
		if first.Verdict != machine.Call || first.Item != all[0] || calls != 1 || withdrawn != 99 {
			t.Errorf("%v first, %d calls, %d withdrawn: want a call of the first item only", first, calls, withdrawn)
		}
	})
}

// Settings of a lane are checked before they are passed on, and hold from then on.
func TestLimitsAreCheckedAndHold(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		if c.Define("a", machine.LaneConfig{Law: limiter.Plain, Window: -1}) == nil || c.SetLimits("a", limiter.Limits{RPM: -1}) == nil {
			t.Error("nonsense was taken")
		}
		if _, err := c.Open(t.Context(), machine.RunConfig{Concurrency: -1}); err == nil {
			t.Error("nonsense was opened")
		}
		if err := errors.Join(c.Define("a", machine.LaneConfig{Law: limiter.Plain, Window: 3}), c.SetLimits("b", limiter.Limits{RPM: 60})); err != nil {
			t.Fatal(err)
		}
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(10, "a"))
		s.Offer(items(10, "b"))
		lanes := map[string]int{}
		out := granted(s)
		for _, g := range out {
			lanes[g.Lane]++
		}
		if lanes["a"] != 3 || lanes["b"] != 1 {
			t.Errorf("%v left at once: want a window of 3, and one a second", lanes)
		}
		for _, g := range out {
			s.Settle(g, ok)
		}
		proves(t, finish(s), 20, 20)
	})
}

// That a lane waits for long concerns every run, and that an item does only its own.
func TestLongWaitsReachTheRunsTheyConcern(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		a, b := open(t, c, machine.RunConfig{}), open(t, c, machine.RunConfig{})
		a.Offer(items(2, ""))
		out := granted(a)
		a.HandOver(out[0], machine.Outcome{Signal: machine.Failed, Directed: true, RetryAfter: 10 * time.Minute})
		a.HandOver(out[1], within(10*time.Minute))
		reported := map[*Session]string{}
		go finish(a)
		finish(b)
		for _, s := range []*Session{a, b} {
			for n := range s.News() {
				switch {
				case n.LongWait == nil:
				case n.LongWait.Own:
					reported[s] += "item "
				default:
					reported[s] += "lane "
				}
			}
		}
		if reported[a] != "item lane " || reported[b] != "lane " {
			t.Errorf("the run whose item waits was told %q, the other %q", reported[a], reported[b])
		}
	})
}

// A memory that cannot be read is said to be so, and is not taken.
func TestMemoryOfAnotherVersionIsRefused(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		if err := c.RestoreLane(machine.DefaultPool, machine.LaneMemory{Version: machine.LaneMemoryVersion + 1}); err == nil {
			t.Error("no error")
		}
	})
}
