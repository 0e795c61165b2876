package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/laws"
)

// A spacing makes laws by which calls leave one by one, so long after one another.
type spacing struct{ every time.Duration }

// NewLaw is part of [limiter.Maker].
func (s *spacing) NewLaw(_ limiter.LawConfig, now time.Time, _ *rand.Rand) limiter.Law {
	return &spaced{every: s.every, next: now}
}

// A spaced is such a law. What it does not say itself [limiter.Unlimited] does.
type spaced struct {
	limiter.Unlimited
	every time.Duration
	next  time.Time // when the next call may leave
}

// Wait returns the time until a call may leave. Asking changes nothing.
func (l *spaced) Wait(now time.Time, _ limiter.Cost) (time.Duration, limiter.Bound) {
	if wait := l.next.Sub(now); wait > 0 {
		return wait, limiter.BoundRequests
	}
	return 0, limiter.BoundNone
}

// Sent notes that a call leaves.
func (l *spaced) Sent(now time.Time, c limiter.Cost, beside int) limiter.Ticket {
	l.next = now.Add(l.every)
	return l.Unlimited.Sent(now, c, beside)
}

// Refused has the lane wait for as long as the server says, or for ten calls.
func (l *spaced) Refused(now time.Time, n limiter.News) limiter.Refusal {
	wait := 10 * l.every
	if n.Directed {
		wait = n.RetryAfter
	}
	l.next = now.Add(wait)
	return limiter.Refusal{Until: l.next}
}

// View says what the law believes: how fast calls may leave.
func (l *spaced) View(now time.Time, c limiter.Cost) limiter.View {
	v := l.Unlimited.View(now, c)
	v.Rate = 1 / l.every.Seconds()
	v.Pace, v.Most = v.Rate, v.Rate
	v.Binds = limiter.PaceBound{By: limiter.BoundRequests, Pace: v.Rate}
	return v
}

// A complete law of one's own. A run takes it by its lanes' configuration:
//
//	batch.WithLaneDefaults(batch.LaneConfig{Maker: &spacing{250 * time.Millisecond}})
//
// Its owner tells it the time; here that is done by hand.
func ExampleMaker() {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	maker := &spacing{every: 250 * time.Millisecond}
	law := laws.New(limiter.LawConfig{Maker: maker}, now, rand.New(rand.NewPCG(1, 2)))
	one := limiter.Cost{Requests: 1}
	for call := range 4 {
		wait, _ := law.Wait(now, one)
		now = now.Add(wait)
		ticket := law.Sent(now, one, 0)
		fmt.Println("call", call, "leaves after", now.Sub(start))
		if call == 1 {
			r := law.Refused(now, limiter.News{Ticket: ticket, Sent: now, Cost: one, Present: true, Directed: true, RetryAfter: 3 * time.Second})
			fmt.Println("refused: nothing leaves for", r.Until.Sub(now))
		}
	}
	view := law.View(now, one)
	fmt.Println(view.Rate, "calls a second")
	// Output:
	// call 0 leaves after 0s
	// call 1 leaves after 250ms
	// refused: nothing leaves for 3s
	// call 2 leaves after 3.25s
	// call 3 leaves after 3.5s
	// 4 calls a second
}
