package model

import (
	"math"
	"slices"
	"testing"
)

// countsOf is a table as anybody would write it, while none of its bins is full.
type countsOf [64][2]float64 // calls, refused

func (s *countsOf) book(bin int, refused bool) {
	s[bin][0]++
	if refused {
		s[bin][1]++
	}
}

func (s *countsOf) sum(from, to int) (calls, refused float64) {
	for _, e := range s[from:to] {
		calls, refused = calls+e[0], refused+e[1]
	}
	return calls, refused
}

// nats is the logarithm of the likelihood of k refusals of n at a share.
func nats(n, k, share float64) (sum float64) {
	if k > 0 {
		sum += k * math.Log(share)
	}
	if n > k {
		sum += (n - k) * math.Log(1-share)
	}
	return sum
}

// gain returns how much better two countsOf explain the counts than one, by the formula.
func (s *countsOf) gain(bin int) float64 {
	n1, k1 := s.sum(0, bin)
	n2, k2 := s.sum(bin, len(s))
	if n1 == 0 || n2 == 0 || k2/n2 <= k1/n1 {
		return 0
	}
	return nats(n1, k1, k1/n1) + nats(n2, k2, k2/n2) - nats(n1+n2, k1+k2, (k1+k2)/(n1+n2))
}

// randomTables are a table and its twin, filled alike: with few bins, or many, and with
// refusals that grow thicker towards the end, or do not.
func randomTables(seed uint64) (t table, s countsOf) {
	rng := seeded(seed)
	bins, calls, slope := 1+rng.IntN(tableBins), rng.IntN(200), rng.Float64()
	for range calls {
		bin := rng.IntN(bins)
		refused := rng.Float64() < slope*float64(bin)/float64(bins)
		t.book(bin, refused)
		s.book(bin, refused)
	}
	return t, s
}

// Sums and gains are those of the direct formula.
func TestTableAgreesWithTheFormula(t *testing.T) {
	gains := 0
	for seed := range uint64(2000) {
		a, b := randomTables(seed)
		for bin := range tableBins {
			n, k := a.below(bin)
			calls, refused := b.sum(0, bin)
			want(t, "calls below", n, calls)
			want(t, "refused below", k, refused)
			near(t, "gain", a.gain(bin), b.gain(bin), 1e-9)
			if b.gain(bin) > 1 {
				gains++
			}
		}
	}
	if gains < 1000 {
		t.Errorf("only %d gains of a nat: not what this test is about", gains)
	}
}

// A full bin forgets half of what it holds, and keeps its share.
func TestTableFades(t *testing.T) {
	rng := seeded(1)
	var a table
	for i := range 100_000 {
		a.book(5, rng.IntN(4) == 0)
		e := a.at(5)
		if e.calls > tableMost || e.refused > e.calls {
			t.Fatalf("after %d calls: %+v", i, e)
		}
		if share := float64(e.refused) / float64(e.calls); i > 1000 && math.Abs(share-0.25) > 0.15 {
			t.Fatalf("after %d calls the share is %v", i, share)
		}
	}
	for range 3 * tableMost { // and what is long past is forgotten
		a.book(5, false)
	}
	if e := a.at(5); float64(e.refused) > 0.1*float64(e.calls) {
		t.Errorf("after as many calls again that were let in: %+v", e)
	}
}

// A call that was booked as let in, and was refused after all, is booked as that; there
// are never more refusals than calls.
func TestTableCorrects(t *testing.T) {
	var a table
	a.correct(3)
	a.book(3, false)
	a.book(3, true)
	for _, refused := range []uint8{2, 2} {
		a.correct(3)
		want(t, "refused", a.at(3).refused, refused)
	}
}

// Scaling down what is below a bin keeps its share, touches nothing else, and does nothing
// where there is less.
func TestTableScalesWhatIsBelow(t *testing.T) {
	for seed := range uint64(500) {
		a, _ := randomTables(seed)
		before, bin := slices.Clone(a.upTo(tableBins)), 1+int(seed)%60
		n, k := a.below(bin)
		a.fade(bin, 40)
		calls, refused := a.below(bin)
		switch {
		case n <= 40 && !slices.Equal(a.upTo(tableBins), before):
			t.Fatalf("seed %d: %v calls were scaled", seed, n)
		case n > 40 && (math.Abs(calls-40) > 32 || math.Abs(refused-k*40/n) > 32 || refused > calls):
			t.Fatalf("seed %d: %v of %v became %v of %v", seed, k, n, refused, calls)
		}
		for i := bin; i < tableBins; i++ {
			want(t, "what is not below", a.at(i), before[i])
		}
	}
}

// Bins grow with what they are of, and no wider than they must.
func TestBinsAreInOrder(t *testing.T) {
	for pace := 0.001; pace < 1e6; pace *= 1.01 {
		bin := paceBin(pace)
		if bin < 0 || bin >= paceBins || paceBin(pace*1.01) < bin {
			t.Fatalf("%v a second is in bin %d", pace, bin)
		}
		if slowest := paceOfBin(bin); bin > 0 && bin < paceBins-1 && (pace < slowest*(1-1e-9) || pace > 1.19*slowest) {
			t.Fatalf("%v a second is in bin %d, whose slowest is %v", pace, bin, slowest)
		}
	}
	first := map[int]int{}
	for n := range 5000 {
		bin := crowdBin(n)
		if bin < 0 || bin >= crowdBins || n > 0 && bin < crowdBin(n-1) {
			t.Fatalf("%d calls are in bin %d", n, bin)
		}
		if _, ok := first[bin]; !ok {
			first[bin] = n
		}
		if bin < crowdBins-1 && float64(n) > max(float64(first[bin]), 1.1*float64(first[bin])) {
			t.Fatalf("%d calls are in one bin with %d", n, first[bin])
		}
	}
}

// An empty table holds nothing, and takes no room: nor does what is asked of it.
func TestEmptyTableIsEmpty(t *testing.T) {
	var a table
	a.correct(7)
	a.fade(tableBins, 1)
	want(t, "a bin", a.at(7), counted{})
	want(t, "gain", a.gain(7), 0)
	want(t, "counts", len(a.counts()), 0)
	want(t, "has bins", a.bins != nil, false)
	a.book(7, false)
	want(t, "a bin of another table", new(table).at(7), counted{})
}
