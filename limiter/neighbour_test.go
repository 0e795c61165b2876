package limiter

import "testing"

// A neighbour is to blame for a while after a clean stretch, at no more than its rate, and
// where the bucket is not so deep that it outlasts him.
func TestNeighbourIsToBlame(t *testing.T) {
	var n neighbour
	want(t, "before anything was clean", n.toBlame(0, 1, 1), false)
	n.clean.note(10, 100)
	for _, c := range []struct {
		t, rate, depth float64
		want           bool
	}{
		{101, 10, 2, true},
		{101, 1, 2, true},
		{101, 20, 2, false},                   // more than was clean
		{100 + cleanMemory + 1, 10, 2, false}, // long ago
		{101, 10, 60, false},                  // deep
	} {
		want(t, "to blame", n.toBlame(c.t, c.rate, c.depth), c.want)
	}
}

// Pauses lengthen while they are in vain, to a bound, and begin anew once calls were let
// in between two refusals.
func TestPausesLengthenInVain(t *testing.T) {
	var n neighbour
	first, last := n.pause(1), 0.0
	last = first
	for range 30 {
		p := n.pause(1)
		if p < last || p > pauseMost || p == last && p < pauseMost {
			t.Fatalf("a pause of %v s after one of %v s", p, last)
		}
		last = p
	}
	want(t, "the longest pause", last, pauseMost)
	want(t, "a pause after calls were let in", n.pause(5), first)
}

// The peak is the highest rate of late: a lower one does not replace it before it is old,
// and a dip is plainly under it.
func TestPeakIsTheHighestOfLate(t *testing.T) {
	var n neighbour
	want(t, "a dip under nothing", n.dip(0, 1, 1), false)
	n.paced(10, 20)
	n.paced(11, 5)
	want(t, "peak", n.peak.rate, 20)
	want(t, "a dip", n.dip(12, 10, 2), true)
	want(t, "nearly the peak", n.dip(12, 19, 2), false)
	want(t, "of a deep bucket", n.dip(12, 10, 60), false)
	n.paced(10+peakMemory+1, 5)
	want(t, "peak, once that is old", n.peak.rate, 5)
	n.paced(10+peakMemory+2, 30)
	want(t, "a higher one", n.peak.rate, 30)
}

// A rate that was let in a minute ago is not given up for a neighbour's burst: after he
// has gone, calls leave at it again within seconds.
func TestNeighbourCostsNoRate(t *testing.T) {
	for seed := range uint64(4) {
		p := fullPail(10, 10)
		w := newLawWorld(LawConfig{}, seed, bucketServer(p, 0.5))
		w.run(150, 1e9)
		p.takes(w.now, max(0, p.level)) // all of it, at once
		w.run(160, 1e9)
		p.takes(w.now, max(0, p.level))
		w.run(190, 1e9)
		near(t, "calls a second after the bursts", w.between(170, 190), 10, 3)
	}
}

// A rate is clean after sixty calls in a row, and not after as many with a refusal between them;
// nor while a rate is searched, when a full bucket lets in whatever is asked.
func TestCleanIsInARow(t *testing.T) {
	for _, c := range []struct {
		name            string
		refused, search bool
		clean           bool
	}{{"in a row", false, false, true}, {"interrupted", true, false, false}, {"searched", false, true, false}} {
		m := newModel(LawConfig{}, noon)
		if !c.search {
			m.estimate.search = nil
		}
		for i := range cleanCalls {
			if c.refused && i == cleanCalls/2 {
				m.fate(&fate{at: float64(i), ticket: Ticket{Pace: 1}, refused: true})
			}
			m.fate(&fate{at: float64(i), ticket: Ticket{Pace: 1}})
		}
		want(t, c.name, m.neighbour.clean.held, c.clean)
	}
}
