package observe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// taken adds the calls of one lane: as many items in each second of a span, by calls of a
// second each.
func (s *series) taken(from, to time.Duration, items int) {
	for at := from; at < to; at += time.Second {
		t := counts{figures: figures{calls: items, callTime: time.Duration(items) * time.Second, answered: items}}
		if items > 0 {
			t.slowest = time.Second
			t.answers[bucketOf(time.Second)] = uint32(items)
		}
		s.addCounts(&t, at, at+time.Second)
	}
}

// Latencies are those of the last 25 to 30 seconds, also after a silence. Where these had no
// call, a mean is taken from all calls.
func TestSeriesForgets(t *testing.T) {
	answers := func(s *series) int {
		late := s.recentLatencies()
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
			s.addCounts(&counts{}, 30*time.Second, 30*time.Second+c.quiet)
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
	call := counts{figures: figures{calls: 1}}
	for _, at := range []time.Duration{time.Second, time.Minute, time.Minute - lateBlock - 1, time.Minute} {
		s.addCounts(&call, at-1, at)
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
		if got := s.secondsLeft(); got != c.want {
			t.Errorf("%+v: ends in %v s", c, got)
		}
	}
	unheard, notRun := newSeries("l"), newSeries("l")
	unheard.work.Items, notRun.work.Items, notRun.total.notRun = 10, 10, 10
	if !math.IsInf(unheard.secondsLeft(), 1) || notRun.secondsLeft() != 0 {
		t.Errorf("nothing is heard yet: ends in %v s; nothing is to be run: in %v s", unheard.secondsLeft(), notRun.secondsLeft())
	}
}

// The bound of a lane is that of most of the last eight snapshots; of equal ones, the latest.
func TestSeriesUsualBound(t *testing.T) {
	const q, k, w = limiter.BoundRequests, limiter.BoundTokens, limiter.BoundWindow
	for _, c := range []struct {
		votes []limiter.Bound
		want  limiter.Bound
	}{
		{nil, limiter.BoundNone},
		{[]limiter.Bound{q}, q},
		{[]limiter.Bound{q, k}, k},
		{[]limiter.Bound{q, q, k}, q},
		{[]limiter.Bound{q, q, limiter.BoundNone}, q},
		{[]limiter.Bound{q, q, q, q, k, k, k, k}, k},
		{[]limiter.Bound{k, k, q, q, q, q, k, k, k, w}, q}, // the first two are forgotten
		{[]limiter.Bound{k, w, w, w, w, w, w, w, w, q, q, q, q, k, k, k}, q},
	} {
		s := newSeries("l")
		for _, b := range c.votes {
			s.vote(b)
		}
		if got := s.usualBound(); got != c.want {
			t.Errorf("%v: held by %q, want %q", c.votes, got, c.want)
		}
	}
	if machine.BoundRequests != q || machine.BoundTokens != k || machine.BoundWindow != w {
		t.Error("bounds have other words")
	}
}

// Between two moments a curve rises evenly; before the earliest that it knows it was flat;
// and the latest is always there.
func TestCurve(t *testing.T) {
	c := curve{gap: time.Second, room: 10}
	if c.at(time.Second) != 0 || c.speed(time.Minute) != 0 || c.now() != 0 {
		t.Error("of nothing there is nothing")
	}
	for k := range 101 {
		c.add(time.Duration(k)*250*time.Millisecond, float64(k))
	}
	if len(c.points) != 10 || c.now() != 25*time.Second || c.at(25*time.Second) != 100 || c.at(time.Hour) != 100 {
		t.Errorf("%+v", c)
	}
	if got := c.at(20*time.Second + 100*time.Millisecond); math.Abs(got-80.4) > 1e-9 {
		t.Errorf("%v at 20.1 s", got)
	}
	if c.at(0) != c.get(0).n || c.speed(5*time.Second) != 4 {
		t.Errorf("%v at the beginning, %v a second", c.at(0), c.speed(5*time.Second))
	}
}

// Whatever is added, a curve never falls and says at each of its moments what was said.
func TestCurveNeverFalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		c := curve{gap: time.Duration(rng.Int64N(2e9)), room: 2 + rng.IntN(20)}
		at, n := time.Duration(0), 0.0
		for range 100 {
			at += time.Duration(rng.Int64N(2e9))
			n += float64(rng.IntN(3))
			c.add(at, n)
			if c.at(at) != n || c.now() != at {
				t.Fatalf("%v at %v, not %v", c.at(at), at, n)
			}
		}
		for d, last := time.Duration(0), 0.0; d < at; d += at / 97 {
			if got := c.at(d); got < last {
				t.Fatalf("falls from %v to %v at %v", last, got, d)
			} else {
				last = got
			}
		}
	}
}

// Speeds are of equal spans up to now; together they are what has ended in that time.
func TestSpeeds(t *testing.T) {
	w := newWorld(Config{})
	if got, span := w.Speeds(37); got != nil || span != 0 {
		t.Errorf("%v in %v", got, span)
	}
	lane := statusOf(0, learned("l", 0, 0))
	w.goes(11, machine.BoundInput, lane, 10)
	got, span := w.Speeds(37)
	if len(got) != 11 || span != 11*time.Second || !near(got[10], 10) {
		t.Errorf("%v in %v", got, span)
	}
	w.goes(600, machine.BoundInput, lane, 10)
	w.goes(300, machine.BoundInput, lane, 30)
	got, span = w.Speeds(37)
	sum := 0.0
	for _, s := range got {
		sum += s * span.Seconds() / 37
	}
	if len(got) != 37 || span != 10*time.Minute || !near(got[0], 10) || !near(got[36], 30) || math.Abs(sum-300*40) > 1 {
		t.Errorf("%v in %v: %v", got, span, sum)
	}
	if _, span = w.Speeds(124); span != 911*time.Second {
		t.Errorf("a run of 911 s shows %v", span)
	}
	if got, span = w.Speeds(1); len(got) != 1 || span != time.Minute {
		t.Errorf("%v in %v", got, span)
	}
	for cells, want := range map[int]time.Duration{37: 10 * time.Minute, 124: 30 * time.Minute, 400: time.Hour, 9: 2 * time.Minute} {
		if got := sparkSpan(time.Duration(cells) * cellSpan); got != want {
			t.Errorf("%d cells show %v, not %v", cells, got, want)
		}
	}
}
