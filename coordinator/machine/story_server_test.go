package machine

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// storyRefusal is the latency of a refusal that the story does not tell by hand.
const storyRefusal = 20 * time.Millisecond

// A storyServer judges the calls that a story does not tell one by one.
type storyServer struct {
	latency time.Duration // of answers
	places  int           // it refuses what is more at once; 0: nothing
	each    int           // it refuses one call in so many; 0: none
	rate    float64       // it refuses what is more a second, with a second's saved up; 0: nothing
	breaks  int           // of twenty calls that it would answer so many break, evenly
	others  float64       // calls a second that somebody else makes of that
	headers bool          // it shows the limit, what is left of it, and until when it is full
	signal  Signal        // by which it refuses
	after   time.Duration // that it names with refusals; 0: none
	stops   bool          // once it has refused one
	cause   error         // what calls that break break of; nil: nobody says
	unsent  bool          // they never reach it

	busy, calls int
	level       float64
	at          time.Time
	refused     map[uint64]bool // by item, of calls in flight
	broken      map[uint64]bool // likewise
	shown       map[uint64][]limiter.Sighting
	turnedAway  int // since it was last told
}

// server is a server of that kind, with what the one before it, if any, still works on.
func (w words) server(before *storyServer) *storyServer {
	s := &storyServer{
		latency: w.span("latency"), places: int(w.number("places")), each: int(w.number("each")), rate: w.number("rate"),
		others: w.number("others"), headers: w.has("headers"), after: w.span("retry-after"),
		signal: Throttled, stops: w.has("until"), refused: map[uint64]bool{}, shown: map[uint64][]limiter.Sighting{},
		breaks: int(w.number("breaks")), broken: map[uint64]bool{}, cause: w.causeOr(nil), unsent: w.has("unsent"),
	}
	s.level = s.rate
	if w.text("refusal", "429") == "503" {
		s.signal = Overloaded
	}
	if before != nil {
		s.busy, s.calls, s.level, s.at, s.refused, s.shown, s.broken = before.busy, before.calls, before.level, before.at, before.refused, before.shown, before.broken
	}
	return s
}

// judge takes a call that arrives.
func (s *storyServer) judge(g Grant, now time.Time) {
	s.calls++
	if !s.at.IsZero() {
		s.level = max(0, min(s.rate, s.level+(s.rate-s.others)*now.Sub(s.at).Seconds()))
	}
	s.at = now
	defer s.show(g)
	if s.places > 0 && s.busy >= s.places || s.each > 0 && s.calls%s.each == 0 || s.rate > 0 && s.level < 1 {
		s.refused[g.Item.Seq] = true
		s.turnedAway++
		return
	}
	s.level--
	s.busy++
	s.broken[g.Item.Seq] = s.calls*s.breaks%20 < s.breaks
}

// show notes what the headers of the call's answer will say.
func (s *storyServer) show(g Grant) {
	if !s.headers {
		return
	}
	s.shown[g.Item.Seq] = []limiter.Sighting{{
		Dimension: limiter.Requests, Limit: 60 * s.rate, Remaining: math.Floor(max(0, s.level)),
		Reset: time.Duration((s.rate - s.level) / s.rate * float64(time.Second)), HasReset: true,
	}}
}

// due returns when a call ends.
func (s *storyServer) due(g Grant) time.Time {
	if s.refused[g.Item.Seq] {
		return g.Item.Sent.Add(storyRefusal)
	}
	return g.Item.Sent.Add(s.latency)
}

// ends is the news of that.
func (s *storyServer) ends(g Grant, now time.Time) Event {
	o := Outcome{Signal: Succeeded, Latency: now.Sub(g.Item.Sent), Sightings: s.shown[g.Item.Seq]}
	delete(s.shown, g.Item.Seq)
	if s.refused[g.Item.Seq] {
		delete(s.refused, g.Item.Seq)
		o.Signal, o.Directed, o.RetryAfter = s.signal, s.after > 0, s.after
		return HandedOver(g, o)
	}
	s.busy = max(0, s.busy-1)
	if s.broken[g.Item.Seq] {
		o.Signal, o.Cause, o.Unsent = Failed, s.cause, s.unsent
		return HandedOver(g, o)
	}
	return Settled(g, o)
}
