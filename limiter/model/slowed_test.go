package model

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// slowedServers are laws before servers that take twenty calls a second, or all of them,
// each of which calls leave at about the pace that is given.
var slowedServers = []struct {
	name   string
	law    limiter.LawConfig
	places int     // calls in flight at most
	pace   float64 // calls per second
	server func() func(at float64, beside int) reply
}{
	{"plain, unlimited", limiter.LawConfig{Law: limiter.Plain}, 6, 20, openServer},
	{"plain, a rate that is not used", limiter.LawConfig{Law: limiter.Plain, Rate: limiter.RateConfig{Initial: 500}}, 6, 20, openServer},
	{"plain, a rate", limiter.LawConfig{Law: limiter.Plain, Rate: limiter.RateConfig{Initial: 20, Ceiling: 20}}, 64, 20, openServer},
	{"plain, told", limiter.LawConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 1200}}, 64, 20, openServer},
	{"plain, silent", limiter.LawConfig{Law: limiter.Plain}, 64, 20, silentServer},
	{"model, told", limiter.LawConfig{Limits: limiter.Limits{RPM: 1200}}, 64, 20, openServer},
	{"model, told and not used", limiter.LawConfig{Limits: limiter.Limits{RPM: 60000}}, 6, 20, openServer},
	{"model, headers", limiter.LawConfig{}, 64, 20, headerServer},
	{"model, silent", limiter.LawConfig{}, 64, 20, silentServer},
	{"model, unlimited", limiter.LawConfig{}, 6, 20, openServer},
	{"model, your own server", limiter.LawConfig{Local: true}, 6, 20, openServer},
}

// latencyOf is the latency of answers: six at a time are twenty a second.
const latencyOf = 0.3

func openServer() func(float64, int) reply {
	return func(float64, int) reply { return reply{kind: isAnswered, after: latencyOf} }
}

func silentServer() func(float64, int) reply { return bucketServer(fullPail(20, 40), latencyOf) }

func headerServer() func(float64, int) reply {
	p := fullPail(20, 1200)
	return func(at float64, _ int) reply {
		r := reply{kind: isAnswered, after: latencyOf}
		if !p.takes(at, 1) {
			r = reply{kind: isRefused, after: 0.1}
		}
		r.news.Sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 1200, Window: time.Minute, Remaining: math.Floor(p.level),
			Reset: time.Duration((p.depth - p.level) / p.refill * 1e9), HasReset: true,
		}}
		return r
	}
}

// breaking has a share of a server's calls break while others are answered, between two
// moments: seven of twenty, evenly.
func breaking(serve func(float64, int) reply, from, to float64) func(float64, int) reply {
	n := 0
	return func(at float64, beside int) reply {
		r := serve(at, beside)
		if at < from || at >= to || r.kind != isAnswered {
			return r
		}
		if n++; n*7%20 < 7 {
			r.kind = isFailed
		}
		return r
	}
}

// While more than three calls in ten break, calls really leave at half the pace that they
// left at before, and go on so for as long as that lasts: neither more successes nor tries
// nor a level that is saved up undo it. When they break no more, the pace is restored.
func TestSlowedLawHalvesThePaceAndKeepsIt(t *testing.T) {
	const from, to = 300.0, 500.0
	for _, c := range slowedServers {
		t.Run(c.name, func(t *testing.T) {
			w := newLawWorld(c.law, 1, breaking(c.server(), from, to))
			w.places = c.places
			w.run(from+60, math.MaxInt)
			believed := viewOf(w.law, at(w.now)).Rate
			w.run(to, math.MaxInt)
			if now := viewOf(w.law, at(w.now)).Rate; now > 1.001*believed {
				t.Errorf("the rate that is believed goes from %v to %v while it is not asked for", believed, now)
			}
			w.run(to+300, math.MaxInt)
			before := w.between(from-60, from)
			near(t, "pace before", before, c.pace, 0.15*c.pace)
			for at := from + 60; at < to; at += 20 {
				near(t, fmt.Sprintf("pace at %g s, to the one before", at), w.between(at, at+20)/before, 0.5, 0.07)
			}
			near(t, "paces in all", w.between(from+60, to)/before, 0.5, 0.05)
			near(t, "pace from two minutes after", w.between(to+120, to+300)/before, 1, 0.12)
		})
	}
}

// The ramp is halved too, for as long as it runs, and what follows on it.
func TestSlowedRampIsHalved(t *testing.T) {
	ramp := limiter.RampConfig{Initial: 5, Target: 20, Duration: 300 * time.Second}
	left := func(to float64) (during, after float64) {
		serve := breaking(openServer(), 1, to)
		w := newLawWorld(limiter.LawConfig{Law: limiter.Plain, Ramp: ramp}, 1, func(at float64, beside int) reply {
			if at == 0 {
				return reply{kind: isRefused, after: 0.1}
			}
			return serve(at, beside)
		})
		w.places = 64
		w.run(400, math.MaxInt)
		return w.between(20, 300) * 280, w.between(310, 400)
	}
	all, full := left(0)
	half, slow := left(400)
	near(t, "calls on a whole ramp", all, 280*13, 60)
	near(t, "of these on a halved one", half/all, 0.5, 0.03)
	if slow > 0.55*full || slow > 11 {
		t.Errorf("after the ramp %.1f calls leave a second, and %.1f where none breaks", slow, full)
	}
}

// Three calls in ten do not slow a lane down, and refusals never do, whatever says so.
func TestSlowedByNothingElse(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Plain, limiter.Model} {
		l := newLaw(limiter.LawConfig{Law: law}, noon, seeded(1))
		end := func(i int, tell func(time.Time, limiter.News)) {
			now := at(float64(i) / 10)
			tell(now, limiter.News{Ticket: l.Sent(now, one, 0), Sent: now, Cost: one, Good: true})
		}
		for i := range 300 {
			switch {
			case i%10 == 2 || i%10 == 5 || i%10 == 8:
				end(i, l.Failed)
			case i%10%3 == 1:
				end(i, func(now time.Time, n limiter.News) { n.Overloaded = i%2 == 0; l.Straggled(now, n) })
			default:
				end(i, l.Answered)
				end(i, l.Answered)
			}
		}
		want(t, law.String()+": slowed", l.Slowed(at(30)), 0)
		near(t, law.String()+": share", viewOf(l, at(30)).Errors, 3.0/11, 0.01)
	}
}

// An outage that a breaker has seen to slows nothing down: neither the failures that led
// to it, nor those that were in flight, nor those of probes, whenever they come in.
func TestSlowedNotByABreakersOutage(t *testing.T) {
	for _, law := range []limiter.LawName{limiter.Plain, limiter.Model} {
		for _, before := range []int{0, 15, 200} {
			l := newLaw(limiter.LawConfig{Law: law}, noon, seeded(1))
			sent := func(s float64) limiter.News {
				return limiter.News{Ticket: l.Sent(at(s), one, 0), Sent: at(s), Cost: one, Good: true, Present: true}
			}
			for i := range before {
				l.Answered(at(float64(i)/10), sent(float64(i)/10))
			}
			flying := make([]limiter.News, 64)
			for i := range flying {
				flying[i] = sent(21)
			}
			for range 10 { // these open it
				l.Failed(at(22), sent(21))
			}
			l.Broken(at(22))
			for _, n := range flying[:32] {
				l.Failed(at(23), n)
			}
			l.Resume(at(26))
			probe := sent(26)
			l.Failed(at(27), probe)
			l.Broken(at(27))
			l.Resume(at(31))
			probe = sent(31)
			l.Answered(at(32), probe)
			l.Climb(at(32))
			for _, n := range flying[32:] { // they ran out of time
				l.Failed(at(33), n)
			}
			want(t, "slowed", l.Slowed(at(33)), 0)
			near(t, "share", viewOf(l, at(33)).Errors, 0, 0)
			for i := range 50 { // it feels its way again
				l.Failed(at(40+float64(i)/100), sent(34))
			}
			want(t, "slowed in the first seconds after it", l.Slowed(at(41)), 0)
			for i := range 50 {
				l.Failed(at(42+float64(i)/100), sent(34))
			}
			want(t, "slowed by what breaks after it", l.Slowed(at(43)), 0.5)
		}
	}
}

// A law does not halve what it feels its way with: in its first ten seconds it looks on,
// and judges by all that it saw then.
func TestFirstSecondsAreNotHalved(t *testing.T) {
	bothLaws(t, limiter.LawConfig{}, func(t *testing.T, law func() limiter.Law) {
		l := law()
		end := func(now time.Time, broke bool) {
			n := leave(l, now, limiter.Cost{Requests: 1})
			if broke {
				l.Failed(now, n)
			} else {
				n.Good = true
				l.Answered(now, n)
			}
		}
		for i := range 100 {
			end(at(float64(i)/100), i%2 > 0)
		}
		near(t, "slowed in the first second", l.Slowed(at(1)), 0, 0)
		end(at(9.9), true)
		near(t, "slowed after ten", l.Slowed(at(9.9)), 0, 0)
		end(at(10), true)
		near(t, "slowed then", l.Slowed(at(10)), 0.5, 0)
	})
}
