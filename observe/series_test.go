package observe

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// taken adds the calls of one lane: as many items in each second of a span, by calls of a
// second each.
func (s *series) taken(from, to time.Duration, items int) {
	for at := from; at < to; at += time.Second {
		t := tally{figures: figures{calls: items, took: time.Duration(items) * time.Second, answered: items}}
		if items > 0 {
			t.slowest = time.Second
			t.answers[bucketOf(time.Second)] = uint32(items)
		}
		s.take(&t, at, at+time.Second)
	}
}

// Latencies are those of the last 25 to 30 seconds, also after a silence. Where these had no
// call, a mean is taken from all calls.
func TestSeriesForgets(t *testing.T) {
	answers := func(s *series) int {
		late := s.late()
		return late.buckets().Count()
	}
	for _, c := range []struct {
		quiet   time.Duration // after half a minute with a call a second
		at      bool          // heard at once, and not each second
		answers int
		mean    int
	}{
		{quiet: 0, answers: 26, mean: 26},
		{quiet: 10 * time.Second, answers: 16, mean: 16},
		{quiet: 10 * time.Second, at: true, answers: 16, mean: 16},
		{quiet: 25 * time.Second, answers: 1, mean: 1},
		{quiet: 30 * time.Second, answers: 0, mean: 30},
		{quiet: time.Hour, at: true, answers: 0, mean: 30},
	} {
		s := newSeries("l")
		s.taken(0, 30*time.Second, 1)
		if c.at {
			s.take(&tally{}, 30*time.Second, 30*time.Second+c.quiet)
		} else {
			s.taken(30*time.Second, 30*time.Second+c.quiet, 0)
		}
		if n, mean := answers(s), s.mean(); n != c.answers || mean.calls != c.mean || mean.meanTook() != 1 {
			t.Errorf("after %v: %d recent answers, a mean of %v s from %d calls", c.quiet, n, mean.meanTook(), mean.calls)
		}
		if s.total.calls != 30 || s.total.answered != 30 || s.span.calls != 30 {
			t.Errorf("%+v in all", s.total.figures)
		}
	}
}

// News that comes late counts in the present block.
func TestSeriesTakesLateNews(t *testing.T) {
	s := newSeries("l")
	call := tally{figures: figures{calls: 1}}
	for _, at := range []time.Duration{time.Second, time.Minute, time.Minute - lateBlock - 1, time.Minute} {
		s.take(&call, at-1, at)
	}
	if s.mean().calls != 3 || s.total.calls != 4 {
		t.Errorf("%d recent calls, %d in all", s.mean().calls, s.total.calls)
	}
}

// The items that are left are those of the work, less those that have ended or are not run. Their
// number is unknown where the work is, and never negative.
func TestSeriesLeft(t *testing.T) {
	for _, c := range []struct {
		work  Work
		total figures
		items int
		bytes int64
	}{
		{Work{}, figures{answered: 5}, UnknownTotal, 0},
		{Work{Items: 100, Bytes: 1000}, figures{}, 100, 1000},
		{Work{Items: 100, Bytes: 1000}, figures{answered: 20, failed: 10, notRun: 5, bytes: 350}, 65, 650},
		{Work{Items: 100, Bytes: 1000}, figures{answered: 1}, 99, 0},          // nobody says how much has ended
		{Work{Items: 100, Bytes: 1000}, figures{notRun: 1}, 99, 0},            // likewise
		{Work{Items: 1, Bytes: 10}, figures{answered: 2, bytes: 20}, 0, 0},    // more than were to be done
		{Work{Items: 100, Bytes: 0}, figures{answered: 20, bytes: 20}, 80, 0}, // not known
	} {
		s := newSeries("l")
		s.work, s.total.figures = c.work, c.total
		if s.left() != c.items || s.leftBytes() != c.bytes {
			t.Errorf("%+v of %+v: %d items and %d bytes are left, want %d and %d", c.total, c.work, s.left(), s.leftBytes(), c.items, c.bytes)
		}
	}
}

// It ends at the speed of the last half minute, or where nothing has ended in that, at that of
// the whole run; at no speed never.
func TestSeriesPending(t *testing.T) {
	for _, c := range []struct {
		items       int
		first, late int // items a second in the first minute, and in the second
		want        float64
	}{
		{1000, 2, 4, (1000 - 360) / 4.},
		{1000, 2, 0, (1000 - 120) / 1.},
		{1000, 0, 0, math.Inf(1)},
		{120, 2, 0, 0},
		{0, 2, 4, UnknownTotal},
	} {
		s := newSeries("l")
		s.work.Items = c.items
		s.taken(0, time.Minute, c.first)
		s.taken(time.Minute, 2*time.Minute, c.late)
		if got := s.pending(); got != c.want {
			t.Errorf("%+v: ends in %v s", c, got)
		}
	}
	unheard, notRun := newSeries("l"), newSeries("l")
	unheard.work.Items, notRun.work.Items, notRun.total.notRun = 10, 10, 10
	if !math.IsInf(unheard.pending(), 1) || notRun.pending() != 0 {
		t.Errorf("nothing is heard yet: ends in %v s; nothing is to be run: in %v s", unheard.pending(), notRun.pending())
	}
}

// The bound of a lane is that of most of the last eight pictures; of equal ones, the latest.
func TestSeriesHeldBy(t *testing.T) {
	const q, k, w = Bound("requests"), Bound("tokens"), Bound("window")
	for _, c := range []struct {
		votes []Bound
		want  Bound
	}{
		{nil, NoBound},
		{[]Bound{q}, q},
		{[]Bound{q, k}, k},
		{[]Bound{q, q, k}, q},
		{[]Bound{q, q, NoBound}, q},
		{[]Bound{q, q, q, q, k, k, k, k}, k},
		{[]Bound{k, k, q, q, q, q, k, k, k, w}, q}, // the first two are forgotten
		{[]Bound{k, w, w, w, w, w, w, w, w, q, q, q, q, k, k, k}, q},
	} {
		s := newSeries("l")
		for _, b := range c.votes {
			s.vote(b)
		}
		if got := s.heldBy(); got != c.want {
			t.Errorf("%v: held by %q, want %q", c.votes, got, c.want)
		}
	}
	if boundOf(machine.BoundRequests) != q || boundOf(machine.BoundTokens) != k || boundOf(machine.BoundWindow) != w {
		t.Error("bounds have other words")
	}
}
