package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

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

// A caller that asks and does not wait gets its context's cause.
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
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
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
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
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
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
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
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		a, b := open(t, c, machine.RunConfig{Concurrency: 1}), open(t, c, machine.RunConfig{Concurrency: 1})
		a.Offer(items(5, ""))
		b.Offer(items(5, ""))
		flying := granted(a)
		c.Close()
		if _, err := c.Open(t.Context(), machine.RunConfig{}); !errors.Is(err, ErrClosed) {
			t.Errorf("Open while closing: %v", err)
		}
		if !isClosed(a.Closed()) || !isClosed(b.Closed()) {
			t.Error("the runs were not told")
		}
		c.Close() // once more
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
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		g := <-s.Work()
		s.Settle(g, ok)
		finish(s)
		c.Close()
		<-c.Done()
		for range 2 * DefaultMailbox {
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

// A session's picture has its own run in it, besides others; the coordinator's has none.
func TestSessionStatus(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		mine, other := open(t, c, machine.RunConfig{Total: 5}), open(t, c, machine.RunConfig{Total: 9})
		mine.Offer(items(2, ""))
		other.Offer(items(3, ""))
		for range 2 {
			mine.Settle(<-mine.Work(), machine.Outcome{Signal: machine.Succeeded})
		}
		s, err := mine.Status(t.Context(), 1)
		if err != nil || s.Run.Total != 5 || s.Run.Done() != 2 || s.Totals.Offered != 5 {
			t.Errorf("%v %+v", err, s)
		}
		if s, err := c.Status(t.Context(), 1); err != nil || s.Run != (machine.RunStatus{}) {
			t.Errorf("%v %+v", err, s.Run)
		}
		for range 3 {
			other.Settle(<-other.Work(), machine.Outcome{Signal: machine.Succeeded})
		}
		mine.EndInput()
		other.EndInput()
	})
}
