package observe

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

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
