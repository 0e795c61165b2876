package timeline

import (
	"maps"
	"slices"

	"github.com/headrace/headrace/observe"
)

// merge is the sample of both spans.
func merge(a, b observe.Sample) observe.Sample {
	span := a.Span + b.Span
	mean := func(x, y float64) float64 {
		if span <= 0 {
			return (x + y) / 2
		}
		return (x*a.Span + y*b.Span) / span
	}
	sum := b
	sum.Span = span
	sum.Answered, sum.Failed, sum.Calls = a.Answered+b.Answered, a.Failed+b.Failed, a.Calls+b.Calls
	sum.Throttled, sum.Broke, sum.Unpriced = a.Throttled+b.Throttled, a.Broke+b.Broke, a.Unpriced+b.Unpriced
	sum.InputTokens, sum.OutputTokens = a.InputTokens+b.InputTokens, a.OutputTokens+b.OutputTokens
	sum.CachedTokens, sum.USD = a.CachedTokens+b.CachedTokens, a.USD+b.USD
	sum.InFlight, sum.InFlightMost = mean(a.InFlight, b.InFlight), max(a.InFlightMost, b.InFlightMost)
	sum.Waiting, sum.Parked, sum.Delayed = mean(a.Waiting, b.Waiting), mean(a.Parked, b.Parked), mean(a.Delayed, b.Delayed)
	sum.Allowed = mean(a.Allowed, b.Allowed)
	sum.Bounds = maps.Clone(a.Bounds)
	if sum.Bounds == nil {
		sum.Bounds = observe.Ledger{}
	}
	for k, d := range b.Bounds {
		sum.Bounds[k] += d
	}
	counts := map[int]int{}
	for _, l := range []observe.Buckets{a.Latency, b.Latency} {
		for _, k := range l {
			counts[k.Number] += k.Count
		}
	}
	sum.Latency = nil
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		sum.Latency = append(sum.Latency, observe.Bucket{Number: n, Count: counts[n]})
	}
	return sum
}
