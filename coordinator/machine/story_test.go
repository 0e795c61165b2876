package machine

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// storyStart is the hour at which each story begins. Any will do: stories tell
// the time since.
var storyStart = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A story is the world of one script: it offers items, lets their calls end as
// the script says, and writes down what the machine makes of it.
//
//	script ─▶ command ─▶ Step … Ready ─▶ "+1.5s  lane default: cooling → probing …"
//
// Grants that end an item without a call are settled on the spot, as a driver's
// workers would.
type story struct {
	t     testing.TB
	m     *Machine
	now   time.Time
	wake  time.Time
	lent  map[uint64]Grant // calls in flight, by item
	items map[uint64]*Item
	next  uint64
	lines []string

	counting bool // serve: calls are counted by the second instead of told
	sent     int
	server   *storyServer // serve: what it refuses; nil: nothing
}

func newStory(t testing.TB, c Config) *story {
	return &story{t: t, m: New(c), now: storyStart, lent: map[uint64]Grant{}, items: map[uint64]*Item{}}
}

func (s *story) say(format string, args ...any) {
	at := fmt.Sprintf("+%v", s.now.Sub(storyStart).Round(time.Millisecond))
	s.lines = append(s.lines, fmt.Sprintf("%-8s %s", at, fmt.Sprintf(format, args...)))
}

// said gives what was written down since it was last called.
func (s *story) said() string {
	if len(s.lines) == 0 {
		return ""
	}
	text := strings.Join(s.lines, "\n") + "\n"
	s.lines = nil
	return text
}

// pass lets the machine decide, and settles what ends without a call.
func (s *story) pass() {
	for again := true; again; {
		again = false
		ready := s.m.Ready(s.now)
		s.wake = ready.WakeAt
		s.tell(ready)
		var ends []Grant // Step may not be called while the grants are read
		for _, g := range ready.Grants {
			if g.Verdict != Call {
				ends = append(ends, g)
				continue
			}
			s.lent[g.Item.Seq] = g
		}
		for _, g := range ends {
			s.m.Step(s.now, Settled(g, Outcome{}))
			again = true
		}
	}
}

func (s *story) tell(ready Ready) {
	for _, t := range ready.Transitions {
		s.say("%v", t)
	}
	for _, lw := range ready.LongWaits {
		s.say("%v", lw)
	}
	for _, message := range ready.Words {
		s.say("lane %s says: %v wait", message.Lane, message.Said)
	}
	for _, st := range ready.Stranded {
		s.say("run %d is stranded: %v", st.Run, st.Cause)
	}
	for _, g := range ready.Grants {
		if s.counting && g.Verdict == Call {
			s.sent++
			s.server.judge(g, s.now)
			continue
		}
		s.say("%v", g)
	}
	for _, f := range ready.Finished {
		s.say("run %d is over: %s", f.Run, counterWords(f.Counters))
	}
}

// until lets time pass, looking at the machine whenever it asked for that.
func (s *story) until(at time.Time) {
	for wakes := 0; !s.wake.IsZero() && !s.wake.After(at); wakes++ {
		if wakes > 100_000 {
			s.t.Fatalf("the machine asks to be woken for ever, at %v", s.now.Sub(storyStart))
		}
		if s.wake.After(s.now) {
			s.now = s.wake
		}
		s.pass()
	}
	if at.After(s.now) {
		s.now = at
	}
	s.pass()
}

// untilQuiet lets time pass until nothing more comes of that.
func (s *story) untilQuiet() {
	for !s.wake.IsZero() {
		s.until(s.wake)
	}
}

// serve has every call judged by the server, for so long, and counts the calls of each
// stretch of that.
func (s *story) serve(span, every time.Duration, server *storyServer) {
	s.counting, s.server = true, server
	end, stretch := s.now.Add(span), s.now.Add(every)
	for s.now.Before(end) {
		at := stretch
		for _, sooner := range []time.Time{s.nextEnd(), s.wake} {
			if !sooner.IsZero() && sooner.Before(at) {
				at = sooner
			}
		}
		s.until(at)
		if server.stops && server.turnedAway > 0 {
			break
		}
		if !s.now.Before(stretch) {
			s.say("%s", s.stretch(every))
			s.sent, stretch = 0, stretch.Add(every)
		}
		s.endDue()
	}
	s.counting = false
}

// stretch describes the calls that left in a stretch of time, and those of them refused.
func (s *story) stretch(span time.Duration) string {
	n, during := s.server.turnedAway, "this second"
	s.server.turnedAway = 0
	if span > time.Second {
		during = fmt.Sprintf("these %v", span)
	}
	if n == 0 {
		return fmt.Sprintf("%d calls left in %s", s.sent, during)
	}
	return fmt.Sprintf("%d calls left in %s, %d are refused", s.sent, during, n)
}

func (s *story) nextEnd() (first time.Time) {
	for _, g := range s.lent {
		if due := s.server.due(g); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

func (s *story) endDue() {
	for seq := range s.next { // in order, so that the story is the same each time
		if g, out := s.lent[seq]; out && !s.server.due(g).After(s.now) {
			delete(s.lent, seq)
			s.m.Step(s.now, s.server.ends(g, s.now))
		}
	}
	s.pass()
}

// ended takes the grant of an item whose call ends now.
func (s *story) ended(seq uint64) Grant {
	g, out := s.lent[seq]
	if !out {
		s.t.Fatalf("item %d is not in flight", seq)
	}
	delete(s.lent, seq)
	return g
}

func (s *story) status() {
	st := s.m.Status(s.now, math.MaxInt)
	for _, l := range st.Lanes {
		s.say("%s", laneWords(l))
	}
	s.say("%d waiting, %s", st.Held, counterWords(st.Totals))
}

func laneWords(l LaneStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lane %s: %v, %v", l.Name, l.Phase, l.Speed)
	if l.Why != "" {
		fmt.Fprintf(&b, " (%s, %v)", l.Why, l.Wait.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, ", %d in flight, %d parked, %d delayed", l.InFlight, l.Parked, l.Delayed)
	for _, level := range []struct {
		units float64
		of    string
	}{{l.Level.Requests, "requests"}, {l.Level.Tokens, "tokens"}} {
		if !math.IsInf(level.units, 1) {
			fmt.Fprintf(&b, ", %.4g %s left", level.units, level.of)
		}
	}
	return b.String()
}

// counterWords names the counters that are not 0, and whether they prove that
// nothing was lost.
func counterWords(c Counters) string {
	var words []string
	for _, n := range []struct {
		count uint64
		of    string
	}{
		{c.Offered, "offered"},
		{c.Settled, "settled"},
		{c.Released, "released"},
		{c.Calls, "calls"},
		{c.HandedOver, "handed over"},
		{c.Throttled, "throttled"},
		{c.Stragglers, "stragglers"},
		{c.Parked, "parked"},
		{c.Redistributed, "redistributed"},
		{c.Delayed, "delayed"},
		{c.Cooldowns, "cooldowns"},
		{c.Participants, "participants"},
		{c.Probes, "probes"},
		{c.Dropped, "dropped"},
	} {
		if n.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", n.count, n.of))
		}
	}
	if c.Proves() {
		words = append(words, "nothing is missing")
	}
	return strings.Join(words, ", ")
}
