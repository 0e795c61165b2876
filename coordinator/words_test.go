package coordinator

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A toll makes laws that let a call leave for each coin that they get, and say how many they
// have had and what waits.
type toll struct{}

func (*toll) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return &tollLaw{} }

type tollLaw struct {
	limiter.Unlimited
	had, coins int
}

type said struct{ had, waiting int }

func (l *tollLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Bound) {
	if l.coins == 0 {
		return limiter.UntilNotified, limiter.BoundRequests
	}
	return 0, limiter.BoundNone
}

func (l *tollLaw) Sent(time.Time, limiter.Cost, int) limiter.Ticket {
	l.coins--
	return limiter.Ticket{}
}

func (l *tollLaw) Hear(_ time.Time, payload any) (r limiter.Reply) {
	switch w := payload.(type) {
	case int:
		l.had, l.coins = l.had+w, l.coins+w
	case error:
		r.Stop = w
	}
	return r
}

func (l *tollLaw) Say(_ time.Time, up limiter.Upcoming) (any, time.Time) {
	return said{l.had, up.Waiting}, time.Time{}
}

func tolled() Config {
	return Config{Machine: machine.Config{Lane: machine.LaneConfig{Maker: &toll{}}}}
}

// latestOf returns the latest word of each lane, among those not received yet.
func latestOf(t *testing.T, c *Coordinator) map[string]said {
	t.Helper()
	synctest.Wait()
	all := map[string]said{}
	select {
	case words := <-c.Words():
		for _, w := range words {
			if _, twice := all[w.Lane]; twice {
				t.Errorf("lane %s says two words: %v", w.Lane, words)
			}
			all[w.Lane] = w.Said.(said)
		}
	default:
	}
	return all
}

// A word reaches the law of its lane, and the law's words come out: the latest of each lane,
// however long nobody listened, and nothing waits meanwhile.
func TestWordsInAndOut(t *testing.T) {
	inBubble(t, tolled(), func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 100})
		s.Offer(items(20, "a"))
		s.Offer(items(10, "b"))
		for range 5 {
			c.Tell("a", 2)
			synctest.Wait()
		}
		if got := granted(s); len(got) != 10 {
			t.Fatalf("%d calls left for ten coins", len(got))
		} else if all := latestOf(t, c); len(all) != 2 || all["a"] != (said{10, 10}) || all["b"] != (said{0, 10}) {
			t.Errorf("said: %v", all)
		} else {
			for _, g := range got {
				s.Settle(g, ok)
			}
		}
		c.Tell("b", 10)
		c.Tell("nowhere", 10)
		if all := latestOf(t, c); all["b"] != (said{10, 0}) || all["a"] != (said{10, 10}) {
			t.Errorf("said: %v", all)
		}
		if all := latestOf(t, c); len(all) != 0 {
			t.Errorf("said though nothing has changed: %v", all)
		}
		c.Tell("a", 10)
		proves(t, finish(s), 30, 30)
	})
}

// A law can stop its lane, and its run learns why.
func TestMessageStopsALane(t *testing.T) {
	inBubble(t, tolled(), func(t *testing.T, c *Coordinator) {
		gone := errors.New("no money, elsewhere")
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(2, ""))
		synctest.Wait()
		c.Tell(machine.DefaultPool, gone)
		<-s.Stranded()
		if !errors.Is(s.Cause(), gone) {
			t.Error(s.Cause())
		}
		finish(s)
	})
}

// The last words can be received after the end, by a later receiver, and then there are no
// more.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(tolled())
		go c.Run()
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(3, ""))
		synctest.Wait()
		c.Tell(machine.DefaultPool, 3)
		finish(s)
		c.Close()
		<-c.Done()
		if words := <-c.Words(); len(words) != 1 || words[0].Said != (said{3, 0}) {
			t.Errorf("%v", words)
		}
		if _, more := <-c.Words(); more {
			t.Error("there is more")
		}
		c.Tell(machine.DefaultPool, 1) // nobody hears, and nobody waits
	})
}

// Who listens all the time misses no last word, while others talk.
func TestWordsWhileListening(t *testing.T) {
	inBubble(t, tolled(), func(t *testing.T, c *Coordinator) {
		heard := make(chan map[string]said)
		go func() {
			all := map[string]said{}
			for words := range c.Words() {
				for _, w := range words {
					all[w.Lane] = w.Said.(said)
				}
				time.Sleep(time.Millisecond) // slow in virtual time
			}
			heard <- all
		}()
		s := open(t, c, machine.RunConfig{Concurrency: 1000})
		lanes := []string{"a", "b", "c"}
		for _, lane := range lanes {
			s.Offer(items(200, lane))
		}
		go func() {
			for range 200 {
				for _, lane := range lanes {
					c.Tell(lane, 1)
				}
				time.Sleep(300 * time.Microsecond)
			}
		}()
		proves(t, finish(s), 600, 600)
		c.Close()
		for lane, last := range <-heard {
			if last != (said{200, 0}) || !slices.Contains(lanes, lane) {
				t.Errorf("lane %s said last %v", lane, last)
			}
		}
	})
}

// A coordinator hears of calls that another one let go: they show that the server answers.
func TestOverhear(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *Coordinator) {
		c.Overhear("a", time.Now().Add(-time.Minute), limiter.Cost{}, machine.Outcome{Signal: machine.Succeeded, Latency: time.Minute})
		status, err := c.Status(t.Context(), 1)
		if err != nil || len(status.Lanes) != 1 || status.Lanes[0].Name != "a" || status.Lanes[0].InFlight != 0 || status.Lanes[0].Latency != time.Minute {
			t.Errorf("%v %+v", err, status.Lanes)
		}
	})
}
