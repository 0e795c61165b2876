package model

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// The plain law comes back from a bad minute: two minutes after it calls are answered at
// nine tenths of the limit again, and go on to be, whatever the server limits by, whether
// it names a wait, and however little it let in meanwhile. It does not hammer the server
// for that.
func TestPlainLawComesBack(t *testing.T) {
	names := false
	for _, by := range []string{"bucket of 5 s", "bucket of 1 s", "windows of 10 s", "windows of 60 s", "spacing"} {
		for _, bad := range []string{"nothing", "one in fifty", "a tenth", "half"} {
			comesBack(t, badTime{limit: 20, by: by, bad: bad, names: names, span: 60})
			names = !names
		}
		names = !names
	}
}

// The same on numbers that it was not made on.
func TestPlainLawComesBackElsewhere(t *testing.T) {
	for _, b := range []badTime{
		{2, "bucket of 1 s", "one in fifty", true, 20},
		{2, "spacing", "a tenth", false, 150},
		{2, "bucket of 5 s", "half", false, 150},
		{7, "bucket of 1 s", "a tenth", false, 150},
		{7, "spacing", "one in fifty", true, 150},
		{7, "spacing", "half", false, 20},
		{100, "bucket of 1 s", "half", true, 150},
		{100, "spacing", "a tenth", true, 20},
		{500, "bucket of 1 s", "one in fifty", false, 20},
	}[:race.Fewer(9)] {
		comesBack(t, b)
	}
}

// A badTime is a server with a limit that lets in less of what it is asked, for a while.
type badTime struct {
	limit float64 // calls per second
	by    string  // what it limits by
	bad   string  // how much it lets in while it is bad
	names bool    // it names waits, in whole seconds
	span  float64 // seconds that it is bad
}

// badFrom is the start of the bad time, in seconds: a law has settled by then.
const badFrom = 300.0

func comesBack(t *testing.T, b badTime) {
	t.Helper()
	t.Run(fmt.Sprintf("%g a second, %s, %s for %g s, Retry-After %v", b.limit, b.by, b.bad, b.span, b.names), func(t *testing.T) {
		s := &badServer{badTime: b, usual: b.door(b.limit), less: b.door(b.limit / map[string]float64{"half": 2, "a tenth": 10}[b.bad])}
		w := newLawWorld(limiter.LawConfig{Law: limiter.Plain}, 1, s.serve)
		w.places = 64
		over := badFrom + b.span
		w.run(over+300, math.MaxInt)

		least := 0.9
		if b.by == "windows of 10 s" || b.by == "windows of 60 s" {
			least = 0.8 // a window that is half over or not when counting begins is a twentieth of it
		}
		if got := s.answered(over+120, over+300) / b.limit; got < least-0.02 { // a refusal more or less in three minutes
			t.Errorf("from the second minute on it makes %.2f of the limit", got)
		}
		soon := 0.0
		for from := over; from <= over+110; from++ {
			soon = max(soon, s.answered(from, from+10)/b.limit)
		}
		if soon < least {
			t.Errorf("within two minutes it makes %.2f of the limit", soon)
		}
		if most := 0.02*b.limit*b.span + 40; float64(s.meanwhile) > most {
			t.Errorf("%d calls were refused in the bad time, want at most %.0f", s.meanwhile, most)
		}
		if share := float64(s.since) / (300 * b.limit); share > 0.02 && s.since > 12 {
			t.Errorf("%d calls were refused after it", s.since)
		}
	})
}

// A door lets calls in, or says in how many seconds it would.
type door func(at float64) (wait float64)

func (b badTime) door(limit float64) door {
	switch b.by {
	case "bucket of 5 s":
		return bucketDoor(limit, 5*limit)
	case "bucket of 1 s":
		return bucketDoor(limit, max(1, limit))
	case "windows of 10 s":
		return windowDoor(10*limit, 10)
	case "windows of 60 s":
		return windowDoor(60*limit, 60)
	}
	return bucketDoor(limit, 1)
}

func bucketDoor(refill, depth float64) door {
	level, last := depth, 0.0
	return func(at float64) float64 {
		level, last = min(depth, level+refill*(at-last)), at
		if level < 1-1e-9 {
			return (1 - level) / refill
		}
		level--
		return 0
	}
}

func windowDoor(n, width float64) door {
	nth, left := 0.0, n
	return func(at float64) float64 {
		if now := math.Floor(at / width); now > nth {
			nth, left = now, n
		}
		if left < 1 {
			return (nth+1)*width - at
		}
		left--
		return 0
	}
}

type badServer struct {
	badTime
	usual, less      door
	calls            int
	let              []float64 // when calls were let in
	meanwhile, since int       // calls refused
}

func (s *badServer) serve(at float64, _ int) reply {
	s.calls++
	wait, bad := 0.0, at >= badFrom && at < badFrom+s.span
	switch {
	case !bad:
		wait = s.usual(at)
	case s.bad == "nothing" || s.bad == "one in fifty" && s.calls%50 > 0:
		wait = 1
	case s.bad == "one in fifty":
	default:
		wait = s.less(at)
	}
	if wait == 0 {
		s.let = append(s.let, at)
		return reply{kind: isAnswered, after: min(0.3, 20/s.limit) * (0.3 + 1.4*float64(s.calls%8)/7)}
	}
	if bad {
		s.meanwhile++
	} else if at > badFrom {
		s.since++
	}
	r := reply{kind: isRefused, after: 0.05}
	if s.names {
		r.news.Directed, r.news.RetryAfter = true, time.Duration(math.Ceil(wait))*time.Second
	}
	return r
}

// answered returns the calls let in per second.
func (s *badServer) answered(from, to float64) float64 {
	n := 0
	for _, at := range s.let {
		if at > from && at <= to {
			n++
		}
	}
	return float64(n) / (to - from)
}
