package limiter

import (
	"slices"
	"testing"
	"time"
)

// Before the first sample everything is 0, and after it everything is that sample.
func TestLatencyFirstSample(t *testing.T) {
	var l Latency
	want(t, "mean", l.Mean(), 0)
	want(t, "p95", l.P95(), 0)
	want(t, "count", l.Count(), 0)
	l.Observe(3 * time.Second)
	want(t, "mean", l.Mean(), 3*time.Second)
	want(t, "p95", l.P95(), 3*time.Second)
	want(t, "count", l.Count(), 1)
}

// The mean moves a fifth of the way to each sample.
func TestLatencyMean(t *testing.T) {
	var l Latency
	l.Observe(time.Second)
	l.Observe(2 * time.Second)
	want(t, "mean", l.Mean(), 1200*time.Millisecond)
	l.Observe(-time.Second)
	want(t, "a negative sample is 0", l.Mean(), 960*time.Millisecond)
}

// The percentile is by nearest rank: of twenty samples the nineteenth.
func TestLatencyP95IsNearestRank(t *testing.T) {
	var l Latency
	for i := 20; i >= 1; i-- {
		l.Observe(time.Duration(i))
	}
	want(t, "p95", l.P95(), 19)
}

// Against a sorted list of the last 128 samples the percentile is the same.
func TestLatencyAgreesWithASortedList(t *testing.T) {
	rng := seeded(1)
	var l Latency
	var all []time.Duration
	for range 1000 {
		d := time.Duration(rng.IntN(200))
		l.Observe(d)
		all = append(all, d)
		last := slices.Clone(all[max(0, len(all)-LatencySamples):])
		slices.Sort(last)
		rank := 1 // the smallest with at least 95 % at or below it
		for 100*rank < 95*len(last) {
			rank++
		}
		want(t, "p95", l.P95(), last[rank-1])
	}
	want(t, "count", l.Count(), 1000)
}
