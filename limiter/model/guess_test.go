package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// atOnceServer works on so many calls at a time, and refuses one more at once.
func atOnceServer(places int, latency float64) func(float64, int) reply {
	var ends []float64
	return func(now float64, _ int) reply {
		busy := ends[:0]
		for _, end := range ends {
			if end > now {
				busy = append(busy, end)
			}
		}
		if ends = busy; len(ends) >= places {
			return reply{kind: isRefused}
		}
		ends = append(ends, now+latency)
		return reply{kind: isAnswered, after: latency}
	}
}

// A cap that refuses at once is found by its first refusals, three for each place at most,
// and nearly all of its places are used from then on.
func TestCapThatRefusesAtOnceIsFound(t *testing.T) {
	for _, places := range []int{1, 2, 4, 8, 16, 64} {
		for _, latency := range []float64{0.03, 0.2, 1} {
			t.Run(fmt.Sprintf("%d of %v s", places, latency), func(t *testing.T) {
				w := newLawWorld(limiter.LawConfig{}, 1, atOnceServer(places, latency))
				w.places = 256
				m, found := w.law.(*Law), -1
				w.watch = func(_, _ time.Time) {
					if c := m.crowd.cap; found < 0 && c != nil && c.guess == nil {
						found = w.refused
					}
				}
				ideal := 100 * latency // a hundred calls in each place
				for w.now < 10*ideal && len(w.sent)-w.refused < 100*places {
					w.run(w.now+latency/10, 1<<30)
				}
				if found < 0 || found > 3*places || w.now > 1.25*ideal+1 { // a second for the way there
					t.Errorf("found by %d refusals, all calls made in %.2f s of %.2f", found, w.now, ideal)
				}
				if kept := w.refused - found; kept > 4*places {
					t.Errorf("%d more refused of %d", kept, len(w.sent))
				}
			})
		}
	}
}

// guessed returns a law whose search has met a refusal with so many others in flight, at once.
func guessed(t *testing.T, flying int, change func(*limiter.News)) *Law {
	t.Helper()
	m := New(limiter.LawConfig{}, noon, seeded(1))
	for range flying {
		leave(m, noon, one)
	}
	n := leave(m, at(1), one)
	n.Present = true
	change(&n)
	m.Refused(at(1), n)
	return m
}

func unchanged(*limiter.News) {}

// A cap is guessed of a refusal that comes at once, names no wait and was not alone.
func TestCapIsGuessedOfARefusalAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		flying int
		change func(*limiter.News)
		want   bool
	}{
		"at once":      {4, unchanged, true},
		"soon":         {4, func(n *limiter.News) { n.Latency = time.Millisecond }, true},
		"late":         {4, func(n *limiter.News) { n.Latency = 10 * time.Second }, false},
		"names a wait": {4, func(n *limiter.News) { n.Directed, n.RetryAfter = true, time.Second }, false},
		"alone":        {0, unchanged, false},
	} {
		m := guessed(t, c.flying, c.change)
		want(t, name, m.crowd.cap != nil, c.want)
	}
	want(t, "places", guessed(t, 4, unchanged).Window(at(1)), 4)
}

// A guess is believed when one more than its places was refused twice, each time after one
// of them was answered.
func TestGuessIsBelievedWhenOneMoreIsRefused(t *testing.T) {
	c := crowd{cap: &callCap{most: 4, guess: &guess{from: 10}}}
	for number := range uint64(guessRefusals) {
		if c.cap.guess == nil {
			t.Fatalf("it is believed after %d refusals", number)
		}
		want(t, "places before one was answered", c.cap.places(), 4)
		want(t, "wrong", c.refutesGuess(&limiter.Ticket{Number: 10 + number, Beside: 3}), false)
		want(t, "places", c.cap.places(), 5)
		want(t, "one more is the cap's", c.cap.holds(&limiter.Ticket{Number: 20 + number, Beside: 4}, 30), true)
	}
	want(t, "believed", c.cap.guess == nil, true)
	want(t, "places", c.cap.places(), 4)
	want(t, "refusals that make it believed", guessRefusals, 2)
	c.cap.refused(&limiter.Ticket{Number: 29, Beside: 4}, 31)
	want(t, "places after the refusal of a call that had left before it was believed", c.cap.places(), 4)
}

// Calls that left before the guess say that it is lower, and nothing else.
func TestGuessIsLoweredByEarlierCalls(t *testing.T) {
	c := crowd{cap: &callCap{most: 7, guess: &guess{from: 10}}}
	want(t, "an earlier refusal is the cap's", c.cap.holds(&limiter.Ticket{Number: 9, Beside: 4}, 30), true)
	want(t, "places", c.cap.places(), 4)
	want(t, "an earlier answer", c.refutesGuess(&limiter.Ticket{Number: 8, Beside: 12}), false)
	want(t, "one more is let go", c.cap.guess.tryingMore, false)
}

// A guess is wrong when a call within it is refused, or one beyond it is answered. What was
// refused then counts as chance's, and no second cap is guessed.
func TestWrongGuessIsTakenBack(t *testing.T) {
	for name, end := range map[string]func(*Law, limiter.News){
		"one within is refused": func(m *Law, n limiter.News) {
			m.inFlight = 3
			m.Refused(at(2), n)
		},
		"one beyond is answered": func(m *Law, n limiter.News) {
			n.Ticket.Beside, n.Good = 4, true
			m.Answered(at(2), n)
		},
	} {
		m := guessed(t, 4, unchanged)
		m.crowd.refutesGuess(&limiter.Ticket{Number: m.fates.next, Beside: 3})
		_, before := m.chance.paces.below(paceBins)
		n := leave(m, at(2), one)
		n.Present = true
		end(m, n)
		_, after := m.chance.paces.below(paceBins)
		if m.crowd.cap != nil || after <= before {
			t.Errorf("%s: %+v, %v refusals are chance's, before %v", name, m.crowd.cap, after, before)
		}
		m.Refused(at(3), n)
		want(t, name+": asked again", m.crowd.cap != nil, false)
	}
}

// One more than was ever let in leaves by itself: a bucket of one call would refuse the
// second of two, and look like a cap.
func TestOneMoreLeavesApart(t *testing.T) {
	m := newModel(limiter.LawConfig{Rate: limiter.RateConfig{Initial: 1000}}, noon)
	m.crowd.cap = &callCap{most: 5, mostSeen: 4}
	m.estimate.search, m.gap = nil, 0.1
	for range 4 {
		leave(m, at(1), one)
	}
	if wait, _ := m.Wait(at(1), one); wait != 0 {
		t.Errorf("the fifth call waits %v under a cap that the tables found", wait)
	}
	m.crowd.cap.exact = true
	wait, by := m.Wait(at(1), one)
	if wait < 50*time.Millisecond || by != limiter.BoundTrial {
		t.Errorf("the fifth call waits %v for %v", wait, by)
	}
	wait, _ = m.Wait(at(1.2), one)
	want(t, "later", wait, 0)
}

// A cap rises no further than a little beyond what was let in, however many such calls are
// known at one moment.
func TestCapRisesNoFurtherThanWasSeen(t *testing.T) {
	c := callCap{most: 4}
	for range 1000 {
		c.raise(0.1, 3)
	}
	if n := c.places(); n != 5 {
		t.Errorf("%d places after four at once were let in", n)
	}
}

// A search that leaps because nobody has asked for long lets no burst go: its refusals
// would come too late.
func TestLeapOfASearchIsNoBurst(t *testing.T) {
	m := New(limiter.LawConfig{}, noon, seeded(1))
	m.latency = 0.03
	leave(m, noon, one)
	m.Tick(at(0.3), true)
	if pace := m.believed(); pace < 500 {
		t.Fatalf("the search did not leap: %v", pace)
	}
	calls := 0
	for wait, _ := m.Wait(at(0.3), one); wait == 0 && calls < 100; wait, _ = m.Wait(at(0.3), one) {
		leave(m, at(0.3), one)
		calls++
	}
	want(t, "calls at once", calls, searchBurst)
}

// Where a limit is known that paces calls, a leap of the search gives them no credit.
func TestLeapOfASearchIsNoCreditForALimit(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{TPM: 60_000}}, noon)
	m.latency = 0.01
	cost := limiter.Cost{Requests: 1, Input: 1000} // one a second
	leave(m, noon, cost)
	m.Tick(at(0.3), true)
	if pace := m.believed(); pace < 500 {
		t.Fatalf("the search did not leap: %v", pace)
	}
	near(t, "credit", m.credit, 0, 1e-9)
	if wait, _ := m.Wait(at(0.3), cost); wait == 0 {
		t.Error("a call leaves after 0.3 s, of one a second")
	}
}
