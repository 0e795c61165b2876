package machine

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A server is a provider of one lane: what it limits, how it is ill, how it says so.
type server struct {
	perSecond, depth float64 // a token bucket; 0: it never refuses for that
	level            float64
	last             time.Time

	latency, spread time.Duration
	refusal         time.Duration // latency of a refusal
	retryAfter      time.Duration // named with refusals; 0: none is
	badRetryAfter   bool          // zero, negative, or an hour, at times
	storm, outage   [2]time.Duration
	outageKind      Signal // Failed, Overloaded, or Nothing for no answer
	exhaustedAt     time.Duration
	onlyIfFirst     bool    // it does not say whom its refusals for good concern
	errors          float64 // share of calls
	shed            float64 // share of calls that it refuses, whatever their pace
	places          int     // calls in flight at once; 0: any number
	busy            bool    // it says 503 where others say 429
	flying          int     // calls in flight now

	input    float64 // tokens a minute, and as many saved up; 0: it does not count them
	left     float64
	counted  time.Time
	names    bool    // a refusal says what it is short of
	shows    bool    // headers
	resets   bool    // they say when the bucket is full again
	period   bool    // they say for what time the limit is
	lies     float64 // times as much is shown as there is; 0: the truth
	slow     bool    // refusals take as long as answers
	unclear  float64 // share of refusals that may mean the day
	minds    float64 // share of refusals that mind the growth
	timeouts float64 // share of what breaks that ran out of time

	day    int           // calls that it serves in all, by a limit by the day; 0: any number
	served int           // of those
	whole  time.Duration // until it is whole again, from the start of the world

	nobody   bool          // is there: each call breaks,
	deadline time.Duration // after so long,
	back     time.Duration // until then; 0: for ever
	fickle   bool          // and in two ways by turns
	turn     bool          // whose turn it is
}

func (p *plan) server() server {
	s := server{
		latency: p.span(time.Millisecond, 3*time.Second), spread: p.span(0, 3*time.Second),
		refusal: p.span(0, 300*time.Millisecond),
	}
	if p.chance(0.6) {
		s.perSecond = p.oneOf(0.5, 1, 5, 20, 100)
		s.depth = max(1, s.perSecond*p.oneOf(0, 1, 10))
		s.level = s.depth
	}
	if p.chance(0.5) {
		s.retryAfter = p.span(0, 5*time.Second)
		s.badRetryAfter = p.chance(0.2)
	}
	if p.may(storms, 0.3) {
		from := p.span(0, 20*time.Second)
		s.storm = [2]time.Duration{from, from + p.span(0, 20*time.Second)}
	}
	if p.may(outages, 0.3) {
		from := p.span(0, 20*time.Second)
		s.outage = [2]time.Duration{from, from + p.span(0, 60*time.Second)}
		s.outageKind = []Signal{Failed, Overloaded, Nothing}[p.rng.IntN(3)]
	}
	if p.may(exhaustion, 0.1) {
		s.exhaustedAt = p.span(0, 30*time.Second)
		s.onlyIfFirst = p.chance(0.4)
	}
	if p.may(randomErrors, 0.4) {
		s.errors = p.oneOf(0.02, 0.2, 0.5)
	}
	if p.may(chances, 0.4) {
		s.shed, s.places = p.oneOf(0, 0.05, 0.3), int(p.oneOf(0, 2, 8))
	}
	s.busy = p.chance(0.2)
	p.words(&s)
	return s
}

// words decides what a server counts besides calls, and what it says of that.
func (p *plan) words(s *server) {
	if p.may(tokens, 0.3) {
		s.input, s.names = p.oneOf(6000, 60_000, 1_000_000), p.chance(0.5)
		s.left = s.input
	}
	if p.may(headers, 0.4) {
		s.shows, s.resets, s.period, s.lies = true, p.chance(0.7), p.chance(0.3), p.oneOf(0, 0, 0, 0, 0.5, 10)
	}
	s.slow = p.may(slowness, 0.25)
	if p.may(riddles, 0.2) {
		s.unclear, s.minds, s.timeouts = p.oneOf(0, 0.02), p.oneOf(0, 0.1), p.oneOf(0, 0.5)
	}
}

// serves is the server's bucket of tokens: refusals are not charged.
func (s *server) serves(now time.Time, c limiter.Cost) bool {
	if s.input == 0 {
		return true
	}
	if !s.counted.IsZero() {
		s.left = min(s.input, s.left+s.input*now.Sub(s.counted).Minutes())
	}
	s.counted = now
	if s.left < min(c.Tokens(), s.input) {
		return false
	}
	s.left -= c.Tokens()
	return true
}

// sightings are what the headers of an answer show.
func (s *server) sightings() (seen []limiter.Sighting) {
	if !s.shows {
		return nil
	}
	if s.perSecond > 0 && s.day == 0 { // a dimension has one limit in headers
		seen = append(seen, s.sighting(limiter.Requests, 60*s.perSecond, s.level, s.depth))
	}
	if s.input > 0 {
		seen = append(seen, s.sighting(limiter.Tokens, s.input, s.left, s.input))
	}
	return seen
}

func (s *server) sighting(d limiter.Dimension, perMinute, level, depth float64) limiter.Sighting {
	x := limiter.Sighting{Dimension: d, Limit: perMinute, Remaining: math.Floor(max(0, level))}
	if s.lies > 0 {
		x.Limit, x.Remaining = x.Limit*s.lies, math.Floor(x.Remaining*s.lies)
	}
	if x.HasReset = s.resets; s.resets {
		x.Reset = time.Duration((depth - level) / perMinute * float64(time.Minute))
	}
	if s.period {
		x.Window = time.Minute
	}
	return x
}

// tell adds the server's other words to an answer, such as headers.
func (s *server) tell(rng *rand.Rand, age time.Duration, o *Outcome) {
	o.Sightings = s.sightings()
	if s.day > 0 {
		o.Sightings = append(o.Sightings, s.ofTheDay(age))
	}
	refused := o.Signal == Throttled || o.Signal == Overloaded
	o.Unclear = refused && rng.Float64() < s.unclear
	o.Slow = refused && rng.Float64() < s.minds
	o.Timeout = o.Signal == Failed && rng.Float64() < s.timeouts
}
