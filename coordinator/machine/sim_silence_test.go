package machine

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Servers that are not there, and what the book says to lanes that are given up for that.

// Ways in which calls break in a world.
const (
	byError uint8 = iota + 1
	byTimeout
	byNobody
	byNobodyElse // another way like byNobody, of servers that break calls now so, now so
)

// fromSilence draws from a stream of its own, so that worlds that are known by their seed
// stay what they were but for servers that are not there.
func (p *plan) fromSilence() {
	rng := rand.New(rand.NewPCG(p.seed, 7))
	p.machine.FirstAnswer = []time.Duration{0, 0, -1, time.Duration(1 + rng.Int64N(int64(time.Minute)))}[rng.IntN(4)]
	for i := range p.lanes {
		s, dead := &p.lanes[i].server, rng.IntN(6) == 0
		latency := []time.Duration{time.Millisecond, time.Second, 20 * time.Second}[rng.IntN(3)]
		back, fickle := time.Duration(rng.Int64N(int64(5*time.Minute))), rng.IntN(4) == 0
		if !dead || p.without&silences != 0 {
			continue
		}
		s.nobody, s.deadline, s.fickle = true, latency, fickle
		if fickle || p.machine.FirstAnswer < 0 || rng.IntN(2) == 0 {
			s.back = back // it is no silence that the machine would end
		}
	}
}

// absent returns the end of a call where nobody is there, if that is so.
func (s *server) absent(age time.Duration) (a answer, is bool) {
	if !s.nobody || s.back > 0 && age >= s.back {
		return a, false
	}
	a = s.breaks(byNobody, s.deadline)
	if s.turn = !s.turn; s.fickle && s.turn {
		a.outcome.Way = byNobodyElse
	}
	return a, true
}

// bookSilence is the book's record of a lane that was never heard.
type bookSilence struct {
	heard bool
	vague bool // another lane next to it was forgotten: whether it listens anew depends on pools that drew on both
	way   uint8
	since time.Time // when the first call that broke so left
	broke int
	tries int       // as if each call but the first had left after the latest
	seen  time.Time // when the latest of these broke
}

// ended takes the end of a call of the lane; late if another law let it go.
func (s *bookSilence) ended(now, sent time.Time, o Outcome, late bool) {
	switch o.Signal {
	case Succeeded, Answered, Throttled, Overloaded:
		s.heard = true
	case Exhausted:
		s.heard = s.heard || o.Alike != 0
	case Failed:
		if !late {
			s.hears(now, sent, o.Way)
		}
	}
}

func (s *bookSilence) hears(now, sent time.Time, way uint8) {
	if s.broke == 0 || s.way != way {
		*s = bookSilence{heard: s.heard, vague: s.vague, way: way, since: sent}
	}
	s.broke++
	if !sent.Before(s.seen) {
		s.tries++
		s.seen = now
	}
}

// isDead reports whether nothing speaks for the lane any more.
func (l *bookLane) isDead(now time.Time, bound time.Duration) bool {
	s := &l.silence
	enough := s.tries >= silentTries && l.of.breaker.State(now) != limiter.Closed
	return bound >= 0 && !s.heard && enough && now.Sub(s.since) >= bound && l.inFlight == 0
}

// givesUp: a lane is given up, when a call broke that its law let go, if and only if nothing
// speaks for it. A call that ends otherwise gives none up.
func (b *book) givesUp(lane string, broke bool) {
	l := b.lanes[lane]
	switch dead := l.isDead(b.w.m.now, b.w.m.cfg.FirstAnswer); {
	case l.silence.vague:
	case l.givenUp && !dead:
		b.w.failf("lane %s is given up: %+v, %d in flight", lane, l.silence, l.inFlight)
	case broke && dead && l.phase != Stopped:
		b.w.failf("lane %s is %v, and nothing speaks for it: %+v", lane, l.phase, l.silence)
	}
	l.givenUp = false
}

// breakSilences forgets the silences of lanes that begin anew, because a run begins to draw on
// them, a run resumes, or a person resets the lane.
func (b *book) breakSilences(e Event) {
	for _, l := range b.pages {
		name := l.name
		nobody := b.w.m.lanes[name] != nil && len(b.w.m.lanes[name].pools) == 0
		if nobody || e.kind == evLaneReset && e.name == name || e.kind == evResumed && b.drawnOn(e.run, name) {
			l.silence = bookSilence{heard: l.silence.heard}
		}
	}
}

func (b *book) drawnOn(run RunID, lane string) bool {
	r := b.w.m.runs[run]
	return r != nil && b.w.m.lanes[lane] != nil && r.drawsOn(b.w.m.lanes[lane])
}

// blurSilences: an offer had a lane forgotten, be it one that was never called. Pools that drew
// on others as well were closed, and may be open again: nobody drew on these others between.
func (b *book) blurSilences() {
	for _, l := range b.pages {
		l.silence.vague = true
	}
}
