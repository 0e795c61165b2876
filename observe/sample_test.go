package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// someSample is one of a run whose lanes are at most LanesInSample.
func someSample(rng *rand.Rand, at time.Duration) Sample {
	s := Sample{
		At: start.Add(at).Local(), Elapsed: at.Seconds(), Span: 0.5 + rng.Float64(),
		Answered: rng.IntN(100), Failed: rng.IntN(3), Calls: rng.IntN(100), Throttled: rng.IntN(10), Broke: rng.IntN(10),
		InputTokens: rng.Int64N(1e6), OutputTokens: rng.Int64N(1e6), CachedTokens: rng.Int64N(10),
		USD: rng.Float64(), Unpriced: rng.IntN(2), InFlight: 64 * rng.Float64(), InFlightMost: rng.IntN(64),
		Waiting: 1000 * rng.Float64(), Parked: rng.Float64(), Delayed: rng.Float64(), Bounds: Ledger{},
	}
	if rng.IntN(3) > 0 {
		s.Allowed = 100 * rng.Float64()
		s.AllowedSpan = s.Span * (0.01 + rng.Float64())
	}
	for range rng.IntN(4) {
		s.Bounds[rng.IntN(len(s.Bounds))] += time.Duration(rng.Int64N(1e9) + 1)
	}
	var h histogram
	for range rng.IntN(20) {
		h[rng.IntN(len(h))]++
	}
	s.Latency = h.buckets()
	for k := range rng.IntN(LanesInSample + 1) {
		s.Lanes = append(s.Lanes, LaneSample{
			Name: fmt.Sprint("lane ", k), Phase: machine.Phase(rng.IntN(4)).String(), Answered: rng.IntN(50), Throttled: rng.IntN(5),
			Limits: map[string]float64{limitNames[rng.IntN(4)]: rng.Float64() + 1},
		})
	}
	return s
}

func floatsOf(s *Sample) []*float64 {
	return []*float64{&s.Elapsed, &s.Span, &s.USD, &s.InFlight, &s.Waiting, &s.Parked, &s.Delayed, &s.Allowed, &s.AllowedSpan}
}

// alike reports whether two samples say the same, but for rounding.
func alike(a, b Sample) bool {
	for k, f := range floatsOf(&a) {
		if !near(*f, *floatsOf(&b)[k]) && math.Abs(*f-*floatsOf(&b)[k]) > 1e-9 {
			return false
		}
		*f = *floatsOf(&b)[k]
	}
	order := func(x, y LaneSample) int { return cmpString(x.Name, y.Name) }
	slices.SortFunc(a.Lanes, order)
	slices.SortFunc(b.Lanes, order)
	return a.At.Equal(b.At) && reflect.DeepEqual(withoutTime(a), withoutTime(b))
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func withoutTime(s Sample) Sample {
	s.At = time.Time{}
	if len(s.Latency) == 0 {
		s.Latency = nil
	}
	if len(s.Lanes) == 0 {
		s.Lanes = nil
	}
	return s
}

// It does not matter which neighbours are merged first, and nothing merged with nothing
// changes nothing.
func TestMergeIsAssociative(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		a, b, c := someSample(rng, time.Second), someSample(rng, 2*time.Second), someSample(rng, 3*time.Second)
		left, right := a.Merge(b).Merge(c), a.Merge(b.Merge(c))
		if !alike(left, right) {
			t.Fatalf("\n%+v\n%+v", left, right)
		}
		if !alike(a.Merge(Sample{}), a) || !alike((Sample{}).Merge(a), a) {
			t.Fatalf("\n%+v\n%+v\n%+v", a, a.Merge(Sample{}), Sample{}.Merge(a))
		}
	}
}

// Merging adds counts, takes means by time, and keeps the end of the later one.
func TestMerge(t *testing.T) {
	a := Sample{
		At: start, Elapsed: 10, Span: 1, Answered: 3, InFlight: 10, InFlightMost: 12, Allowed: 30, Bounds: Ledger{limiter.BoundTokens: 1e9},
		Latency: Buckets{{4, 1}, {9, 2}}, Lanes: []LaneSample{{Name: "l", Phase: "cooling", Answered: 3, Limits: map[string]float64{"requests": 3}}},
	}
	b := Sample{
		At: start.Add(3 * time.Second), Elapsed: 13, Span: 3, Answered: 5, InFlight: 20, InFlightMost: 11, Bounds: Ledger{limiter.BoundTokens: 2e9, limiter.BoundOutput: 1e9},
		Latency: Buckets{{9, 5}}, Lanes: []LaneSample{{Name: "l", Phase: "flowing", Answered: 5, Limits: map[string]float64{"requests": 4}}},
	}
	want := Sample{
		At: b.At, Elapsed: 13, Span: 4, Answered: 8, InFlight: 17.5, InFlightMost: 12, Allowed: 30, AllowedSpan: 1, Bounds: Ledger{limiter.BoundTokens: 3e9, limiter.BoundOutput: 1e9},
		Latency: Buckets{{4, 1}, {9, 7}}, Lanes: []LaneSample{{Name: "l", Phase: "flowing", Answered: 8, Limits: map[string]float64{"requests": 4}}},
	}
	if got := a.Merge(b); !alike(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	if a.Lanes[0].Answered != 3 || b.Lanes[0].Answered != 5 || a.Bounds[limiter.BoundTokens] != 1e9 {
		t.Error("merging has changed what was merged")
	}
}

// Each latency is in the bucket between whose ends it lies, and what stands for the bucket
// is off by 5 % at most.
func TestBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 100_000 {
		d := time.Duration(float64(time.Millisecond) * (1 + rng.ExpFloat64()*1000))
		k := bucketOf(d)
		if d > bucketEnds[k] || k > 0 && d <= bucketEnds[k-1] {
			t.Fatalf("%v in bucket %d", d, k)
		}
		if off := float64(middleOf(k))/float64(d) - 1; off > 0.05 || off < -0.05 {
			t.Fatalf("%v is said to be %v", d, middleOf(k))
		}
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, time.Millisecond: 0, time.Millisecond + 1: 1, 1 << 62: lastBucket} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v in bucket %d, not %d", d, got, want)
		}
	}
}

// A quantile of buckets is that of what is in them, also after merging.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	var all []time.Duration
	var parts [2]histogram
	for k := range 5000 {
		d := time.Duration(float64(time.Second) * (0.01 + rng.ExpFloat64()))
		all = append(all, d)
		parts[k%2][bucketOf(d)]++
	}
	slices.Sort(all)
	b := parts[0].buckets().merge(parts[1].buckets())
	for _, q := range []float64{0.01, 0.5, 0.95, 1} {
		want := all[max(0, int(q*5000)-1)]
		if off := float64(b.Quantile(q))/float64(want) - 1; off > 0.051 || off < -0.051 {
			t.Errorf("%v: %v, not %v", q, b.Quantile(q), want)
		}
	}
	if b.Count() != 5000 || Buckets(nil).Quantile(0.5) != 0 {
		t.Errorf("%d", b.Count())
	}
}
