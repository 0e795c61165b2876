package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// As many grants are out as the run may have calls in flight, and each call that
// ends lets exactly one more go.
func TestGrantsFlow(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		s.Offer(items(10, ""))
		out := granted(s)
		if len(out) != 4 {
			t.Fatalf("%d grants, want 4", len(out))
		}
		for next := uint64(4); len(out) > 0; next++ {
			s.Settle(out[0], ok)
			more := granted(s)
			if next < 10 && (len(more) != 1 || more[0].Item.Seq != next) || next >= 10 && len(more) > 0 {
				t.Fatalf("after a call ended, want item %d: %v", next, more)
			}
			out = append(out[1:], more...)
		}
		proves(t, finish(s), 10, 10)
	})
}

// counted is a clock that counts the timers it made, and how often they were set.
type counted struct {
	clockwork.Clock
	timers, resets int
}

type countedTimer struct {
	clockwork.Timer
	clock *counted
}

func (c *counted) NewTimer(d time.Duration) clockwork.Timer {
	c.timers++
	return countedTimer{c.Clock.NewTimer(d), c}
}

func (t countedTimer) Reset(d time.Duration) bool {
	t.clock.resets++
	return t.Timer.Reset(d)
}

// A cooldown is one timer, set once, however many items wait for its end; and it
// ends at the instant that was asked for.
func TestCooldownIsOneTimerAndEndsExactly(t *testing.T) {
	clock := &counted{Clock: clockwork.NewRealClock()}
	inBubble(t, Config{Clock: clock, Machine: machine.Config{Lane: exact}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 8})
		s.Offer(items(500, ""))
		begun := time.Now()
		for _, g := range granted(s) {
			s.HandOver(g, within(10*time.Second))
		}
		synctest.Wait()
		resets := clock.resets
		probe := <-s.Work() // nothing but time brings it
		if after := time.Since(begun); after != 10*time.Second {
			t.Errorf("the first call after a cooldown of 10 s left after %v", after)
		}
		if clock.timers != 1 || resets != 1 {
			t.Errorf("%d timers, set %d times: want one, set once", clock.timers, resets)
		}
		if rest := granted(s); len(rest) > 0 {
			t.Errorf("%d calls left beside the probe", len(rest))
		}
		s.Settle(probe, ok)
		n := finish(s)
		proves(t, n, 500, 508)
		if n.Cooldowns != 1 || n.Participants != 8 || n.Parked != 8 || n.Redistributed != 8 {
			t.Errorf("%+v", n)
		}
	})
}

// Items that are paced leave one by one at their exact instants while nothing else
// happens: the timer is set again after each tick.
func TestPacedItemsAreWokenEachTime(t *testing.T) {
	lane := machine.LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Second}}
	inBubble(t, Config{Machine: machine.Config{Lane: lane}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 100})
		begun := time.Now()
		s.Offer(items(20, ""))
		s.EndInput()
		for i := range 20 {
			g := <-s.Work()
			if at := time.Since(begun); at != time.Duration(i)*time.Second {
				t.Fatalf("call %d left at %v", i, at)
			}
			defer s.Settle(g, ok)
		}
	})
}

// A wake-up that becomes due before the one that the timer is set for is not
// missed: of two lanes that cool, the one that cools shorter goes first.
func TestEarlierWakeUpShortensTheTimer(t *testing.T) {
	inBubble(t, Config{Machine: machine.Config{Lane: exact}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, "long"))
		s.Offer(items(1, "short"))
		begun := time.Now()
		for _, g := range granted(s) {
			wait := time.Second
			if g.Lane == "long" {
				wait = time.Minute
			}
			s.HandOver(g, within(wait))
			synctest.Wait()
		}
		for _, want := range []time.Duration{time.Second, time.Minute} {
			g := <-s.Work()
			if at := time.Since(begun); at != want {
				t.Errorf("%s came back after %v, want %v", g.Lane, at, want)
			}
			s.Settle(g, ok)
		}
		proves(t, finish(s), 2, 4)
	})
}

// hasty is a clock whose timers go off half-way.
type hasty struct{ clockwork.Clock }

type hastyTimer struct{ clockwork.Timer }

func (c hasty) NewTimer(d time.Duration) clockwork.Timer { return hastyTimer{c.Clock.NewTimer(d)} }

func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d/2 + d%2) }

// A tick that comes too early does no harm: the timer is set again, and the wake-up
// comes when it is due.
func TestEarlyTickDoesNoHarm(t *testing.T) {
	cfg := Config{Clock: hasty{clockwork.NewRealClock()}, Machine: machine.Config{Lane: exact}}
	inBubble(t, cfg, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		begun := time.Now()
		s.HandOver(<-s.Work(), within(time.Minute))
		g := <-s.Work()
		if at := time.Since(begun); at != time.Minute {
			t.Errorf("it came back after %v", at)
		}
		s.Settle(g, ok)
		proves(t, finish(s), 1, 2)
	})
}

// A call that broke comes back after its own backoff, woken by the timer alone.
func TestBackoffEndsByItself(t *testing.T) {
	cfg := Config{Machine: machine.Config{Backoff: limiter.BackoffConfig{Base: time.Minute, Max: time.Minute}}}
	inBubble(t, cfg, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		g := <-s.Work()
		begun := time.Now()
		s.HandOver(g, broken)
		g = <-s.Work()
		if waited := time.Since(begun); waited < 6*time.Second || waited > time.Minute || g.Item.Waited != waited {
			t.Errorf("back after %v, and says %v", waited, g.Item.Waited)
		}
		s.Settle(g, ok)
		proves(t, finish(s), 1, 2)
	})
}

// A run has no more items waiting here than it may; its feed waits, and goes on
// when a call has ended.
func TestDoorShutsAtTheReadAheadAndOpensAgain(t *testing.T) {
	const ahead = 10
	inBubble(t, Config{ReadAhead: ahead}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 2})
		taken := 0
		go func() {
			for _, it := range items(50, "") {
				s.Offer([]*machine.Item{it})
				taken++
			}
			s.EndInput()
		}()
		out := granted(s)
		for want := ahead + 2; len(out) > 0; want++ {
			if taken != min(50, want) {
				t.Fatalf("%d items taken, want %d that wait and 2 in flight beyond the %d done", taken, ahead, want-ahead-2)
			}
			s.Settle(out[0], ok)
			out = append(out[1:], granted(s)...)
		}
		n, _ := s.Final()
		proves(t, n, 50, 50)
	})
}

// An item that comes back counts as one that waits: refusals do not let the feed
// run ahead.
func TestDoorCountsWhatCameBack(t *testing.T) {
	inBubble(t, Config{ReadAhead: 4}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		taken := 0
		go func() {
			for _, it := range items(100, "") {
				s.Offer([]*machine.Item{it})
				taken++
			}
			s.EndInput()
		}()
		for _, g := range granted(s) {
			s.HandOver(g, within(time.Minute))
		}
		synctest.Wait()
		if taken != 8 {
			t.Errorf("%d items taken, want 4 that wait and 4 that came back", taken)
		}
		for g := range s.Work() {
			s.Settle(g, ok)
		}
		n, _ := s.Final()
		proves(t, n, 100, 104)
	})
}

// A run whose lane cools, and whose feed therefore waits, does not keep out a run
// whose lane is well.
func TestCooledRunDoesNotShutTheDoorOnAnother(t *testing.T) {
	inBubble(t, Config{ReadAhead: 8}, func(t *testing.T, c *Coordinator) {
		ill, well := open(t, c, machine.RunConfig{Concurrency: 1}), open(t, c, machine.RunConfig{Concurrency: 1})
		go func() {
			for _, it := range items(100, "ill") {
				ill.Offer([]*machine.Item{it})
			}
			ill.EndInput()
		}()
		begun := time.Now()
		ill.HandOver(<-ill.Work(), within(time.Hour/10))
		synctest.Wait()
		go func() {
			for _, it := range items(100, "well") {
				well.Offer([]*machine.Item{it})
			}
			well.EndInput()
		}()
		for g := range well.Work() {
			well.Settle(g, ok)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the healthy run took %v", took)
		}
		for g := range ill.Work() {
			ill.Settle(g, ok)
		}
	})
}

// A run whose grants nobody takes stops neither the owner nor another run.
func TestUnreadWorkStopsNobody(t *testing.T) {
	inBubble(t, Config{ReadAhead: 64}, func(t *testing.T, c *Coordinator) {
		deaf, heard := open(t, c, machine.RunConfig{Concurrency: 3}), open(t, c, machine.RunConfig{Concurrency: 3})
		deaf.Offer(items(64, ""))
		synctest.Wait()
		heard.Offer(items(64, ""))
		proves(t, finish(heard), 64, 64)
		if st, err := c.Status(t.Context(), 1); err != nil || st.Lanes[0].InFlight != 3 || st.Held != 61 {
			t.Errorf("%v %+v", err, st)
		}
		proves(t, finish(deaf), 64, 64)
	})
}

// Status answers while grants are out, while the door is shut, and while the lane
// cools; and says so.
func TestStatusAnswersWhileBusy(t *testing.T) {
	inBubble(t, Config{Machine: machine.Config{Lane: exact}, ReadAhead: 4}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 2})
		go func() {
			s.Offer(items(5, ""))
			s.Offer(items(1, "")) // waits at the door
			s.EndInput()
		}()
		out := granted(s)
		if st, err := c.Status(t.Context(), 5); err != nil || st.Lanes[0].InFlight != 2 || st.Held != 4 {
			t.Errorf("%v %+v", err, st)
		}
		s.HandOver(out[0], within(time.Minute))
		synctest.Wait()
		st, err := c.Status(t.Context(), 5)
		if err != nil || st.Lanes[0].Phase != machine.Cooling || st.Lanes[0].Wait != time.Minute || st.Lanes[0].Parked != 1 {
			t.Errorf("%v %+v", err, st)
		}
		s.Settle(out[1], ok)
		for g := range s.Work() {
			s.Settle(g, ok)
		}
	})
}

// Whoever asks and does not wait gets their context's cause.
func TestAskingHonoursContext(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	c := New(Config{}) // not run: nobody answers
	if _, err := c.Status(ctx, 1); !errors.Is(err, enough) {
		t.Error(err)
	}
	if _, err := c.Open(ctx, machine.RunConfig{}); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A run that was opened for somebody who had left is ended at once: it would keep
// the coordinator from closing for ever.
func TestOpenThatNobodyWaitedForIsTakenBack(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // whether the answer or the context is seen first is chance
			if s, err := c.Open(ctx, machine.RunConfig{}); err == nil {
				s.EndInput()
			}
		}
	})
}

// Pause lets nothing leave, of what waits and of what comes; Resume lets all of it.
func TestPauseAndResume(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 8})
		s.Pause()
		s.Offer(items(8, ""))
		if out := granted(s); len(out) > 0 {
			t.Fatalf("%d calls left a paused run", len(out))
		}
		s.Resume()
		out := granted(s)
		if len(out) != 8 {
			t.Fatalf("%d calls left after Resume", len(out))
		}
		s.Pause()
		for _, g := range out {
			s.HandOver(g, ok) // back in line
		}
		if out := granted(s); len(out) > 0 {
			t.Fatalf("%d calls left a paused run", len(out))
		}
		s.Resume()
		proves(t, finish(s), 8, 16)
	})
}

// Drain gives back what waits, with a verdict, at once and also while the run is
// paused; what is in flight may end, and if it is handed over comes back too.
func TestDrainGivesBackWhatWaits(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 2})
		s.Offer(items(10, ""))
		out := granted(s)
		s.Pause()
		s.Drain()
		s.Settle(out[0], ok)
		s.HandOver(out[1], refused)
		s.EndInput()
		ends := 0
		for g := range s.Work() {
			if g.Verdict != machine.EndDrained {
				t.Errorf("%v", g)
			}
			ends++
			s.Settle(g, machine.Outcome{})
		}
		n, _ := s.Final()
		proves(t, n, 10, 2)
		if ends != 9 || n.Settled != 1 || n.Released != 9 {
			t.Errorf("%d ends, %+v", ends, n)
		}
	})
}

// Close drains the runs that are open, refuses new ones, and ends the coordinator
// when the last of them is over; not before.
func TestCloseWithOpenSessions(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		a, b := open(t, c, machine.RunConfig{Concurrency: 1}), open(t, c, machine.RunConfig{Concurrency: 1})
		a.Offer(items(5, ""))
		b.Offer(items(5, ""))
		flying := granted(a)
		c.Close()
		if _, err := c.Open(t.Context(), machine.RunConfig{}); !errors.Is(err, ErrClosed) {
			t.Errorf("Open while closing: %v", err)
		}
		flyingToo := granted(b)
		b.Settle(flyingToo[0], ok)
		proves(t, finish(b), 5, 1)
		synctest.Wait()
		select {
		case <-c.Done():
			t.Fatal("it ended while a call was in flight")
		default:
		}
		a.Settle(flying[0], ok)
		proves(t, finish(a), 5, 1)
		<-c.Done()
	})
}

// After the end every question is answered with ErrClosed, and whatever is said is
// not heard and blocks nobody, however much it is.
func TestNothingBlocksAfterTheEnd(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		g := <-s.Work()
		s.Settle(g, ok)
		finish(s)
		c.Close()
		<-c.Done()
		for range 2 * mailboxSize {
			s.Settle(g, ok)
			s.HandOver(g, refused)
			s.Offer(nil)
		}
		s.Pause()
		s.Drain()
		c.ResetLane("default")
		c.Close()
		if _, err := c.Open(t.Context(), machine.RunConfig{}); !errors.Is(err, ErrClosed) {
			t.Errorf("Open: %v", err)
		}
		if _, err := c.Status(t.Context(), 1); !errors.Is(err, ErrClosed) {
			t.Errorf("Status: %v", err)
		}
	})
}

// Transitions that a run does not read are dropped and counted, and slow nothing.
func TestUnreadNewsIsDroppedAndCounted(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
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

// A run that lost its last lane is told so, with the cause, and what waits comes
// back with it.
func TestStranded(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
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
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
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
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
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

// What is said of a lane is checked before it is told, and holds from then on.
func TestLimitsAreCheckedAndHold(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		if c.Define("a", machine.LaneConfig{Window: -1}) == nil || c.SetLimits("a", limiter.Limits{RPM: -1}) == nil {
			t.Error("nonsense was taken")
		}
		if _, err := c.Open(t.Context(), machine.RunConfig{Concurrency: -1}); err == nil {
			t.Error("nonsense was opened")
		}
		if err := errors.Join(c.Define("a", machine.LaneConfig{Window: 3}), c.SetLimits("b", limiter.Limits{RPM: 60})); err != nil {
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
