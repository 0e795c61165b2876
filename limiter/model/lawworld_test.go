package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A kind is how a call of a lawWorld ends.
type kind uint8

const (
	isAnswered kind = iota
	isRefused
	isFailed
	isVanished
)

// A reply is how and when a call ends.
type reply struct {
	kind  kind
	after float64      // seconds
	news  limiter.News // what it tells, but for what the world knows by itself
}

// A lawWorld is the owner of one law and the server behind it, in virtual time. It
// keeps the epochs as the machine does, in as few lines as that takes.
//
//	wish ─▶ Tick ─▶ Wait ─0─▶ Sent ─▶ serve ─after─▶ Answered | Refused | … ─▶ hold ─▶ Resume ─▶ a probe ─▶ Climb
type lawWorld struct {
	law    limiter.Law
	serve  func(at float64, beside int) reply
	cost   func() limiter.Cost
	every  float64 // seconds between two calls that are wished for; 0: always one more
	places int     // calls in flight at most, whatever the law says; 0: only the law bounds them
	watch  func(from, to time.Time)

	now, wish, until float64 // until: nothing leaves before
	coming           []coming
	epoch            int
	cooling, probing bool
	blocked          bool
	busy             int
	sent             []float64
	refused          int // calls
	alone            int // of those, the ones that made only their item wait
}

type coming struct {
	at    float64
	epoch int
	probe bool
	reply reply
}

// one is the usual cost of a call.
var one = limiter.Cost{Requests: 1}

func newLawWorld(c limiter.LawConfig, seed uint64, serve func(at float64, beside int) reply) *lawWorld {
	return &lawWorld{law: newLaw(c, noon, seeded(seed)), serve: serve, cost: func() limiter.Cost { return one }}
}

// run lets time pass until so many seconds after noon, or until so many calls were sent.
func (w *lawWorld) run(seconds float64, calls int) {
	for w.now < seconds && len(w.sent) < calls {
		w.end()
		if wait := w.send(calls); !w.pass(seconds, wait) {
			return
		}
	}
}

// pass moves time to what happens next.
func (w *lawWorld) pass(seconds, wait float64) bool {
	next := min(seconds, w.now+wait)
	if w.cooling {
		next = min(seconds, w.until)
	} else if w.wish > w.now {
		next = min(next, w.wish)
	}
	for _, c := range w.coming {
		next = min(next, c.at)
	}
	if w.watch != nil {
		w.watch(at(w.now), at(next))
	}
	more := next > w.now || len(w.coming) > 0
	w.now = next
	return more
}

// send lets as many calls leave as may, and answers how many seconds the next one waits.
func (w *lawWorld) send(most int) float64 {
	if w.cooling && w.now >= w.until {
		w.cooling = false
		if w.probing = !w.law.Resume(at(w.now)); !w.probing {
			w.law.Climb(at(w.now))
		}
	}
	for w.may() && len(w.sent) < most {
		now, c := at(w.now), w.cost()
		w.law.Tick(now, w.blocked)
		wait, _ := w.law.Wait(now, c)
		if w.probing {
			wait = w.law.ProbeWait(now, c)
		}
		if w.blocked = w.blocked || wait > 0; wait > 0 {
			return wait.Seconds()
		}
		w.leave(now, c)
	}
	return math.Inf(1)
}

func (w *lawWorld) may() bool {
	if w.cooling || w.probing && w.inEpoch() > 0 || w.wish > w.now {
		return false
	}
	if w.places > 0 && w.busy >= w.places {
		return false
	}
	window := w.law.Window(at(w.now))
	return window == 0 || w.busy < window || w.busy == 0
}

func (w *lawWorld) inEpoch() (n int) {
	for _, c := range w.coming {
		if c.epoch == w.epoch {
			n++
		}
	}
	return n
}

func (w *lawWorld) leave(now time.Time, c limiter.Cost) {
	r := w.serve(w.now, w.busy)
	r.news.Ticket, r.news.Sent, r.news.Cost = w.law.Sent(now, c, w.busy), now, c
	w.blocked = false
	w.busy++
	w.sent = append(w.sent, w.now)
	w.coming = append(w.coming, coming{w.now + r.after, w.epoch, w.probing, r})
	if w.every > 0 {
		w.wish += w.every
	}
}

// end tells the law of the calls that have ended, in the order in which they did.
func (w *lawWorld) end() {
	for {
		first := -1
		for i, c := range w.coming {
			if c.at <= w.now && (first < 0 || c.at < w.coming[first].at) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		c := w.coming[first]
		w.coming = append(w.coming[:first], w.coming[first+1:]...)
		w.busy--
		w.tell(&c)
	}
}

func (w *lawWorld) tell(c *coming) {
	now, n := at(w.now), c.reply.news
	n.Present, n.Probe = c.epoch == w.epoch, c.probe
	n.Good, n.Latency = c.reply.kind == isAnswered, time.Duration(c.reply.after*1e9)
	switch c.reply.kind {
	case isAnswered:
		w.law.Answered(now, n)
	case isFailed:
		w.law.Failed(now, n)
	case isVanished:
		w.law.Vanished(now, n)
		return
	case isRefused:
		w.refuse(now, n)
		return
	}
	if n.Probe && n.Present && w.probing {
		w.probing = false
		w.law.Climb(now)
	}
}

func (w *lawWorld) refuse(now time.Time, n limiter.News) {
	w.refused++
	if !n.Present {
		if until := w.law.Straggled(now, n); w.cooling && !until.IsZero() {
			w.until = max(w.until, until.Sub(noon).Seconds())
		}
		return
	}
	r := w.law.Refused(now, n)
	if r.Alone {
		w.alone++
		return
	}
	w.epoch++
	w.cooling, w.probing = true, false
	w.until = max(w.now, r.Until.Sub(noon).Seconds())
}

// between returns the calls per second that left in (from, to].
func (w *lawWorld) between(from, to float64) float64 {
	n := 0
	for _, s := range w.sent {
		if s > from && s <= to {
			n++
		}
	}
	return float64(n) / (to - from)
}

// A pail is a provider's bucket: refusals are not charged.
type pail struct{ refill, depth, level, last float64 }

func fullPail(refill, depth float64) *pail { return &pail{refill: refill, depth: depth, level: depth} }

func (p *pail) takes(t, n float64) bool {
	p.level, p.last = min(p.depth, p.level+p.refill*(t-p.last)), t
	if p.level < n {
		return false
	}
	p.level -= n
	return true
}

// bucketServer answers after latency seconds or so, and refuses after a tenth of one, in
// silence, what its bucket does not hold. Were all answers equally late, a cap on calls in
// flight would explain as much.
func bucketServer(p *pail, latency float64) func(float64, int) reply {
	rng := seeded(11)
	return func(t float64, _ int) reply {
		if p.takes(t, 1) {
			return reply{kind: isAnswered, after: latency * (0.3 + 1.4*rng.Float64())}
		}
		return reply{kind: isRefused, after: 0.1}
	}
}
