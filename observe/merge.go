package observe

import (
	"cmp"
	"slices"
	"time"
)

// Merge returns both spans as one; next is the later one. Counts, times and latencies add up.
// Gauges become the mean over both, and the most of either. Values at the end of a span are
// next's. A zero Sample changes nothing. So the order of merging does not matter, except for
// Lanes where more than LanesInSample take turns: each merge keeps the busiest.
func (s Sample) Merge(next Sample) Sample {
	sum := Sample{
		At: later(s.At, next.At), Elapsed: max(s.Elapsed, next.Elapsed), Span: s.Span + next.Span,
		Answered: s.Answered + next.Answered, Failed: s.Failed + next.Failed,
		Calls: s.Calls + next.Calls, Throttled: s.Throttled + next.Throttled, Broke: s.Broke + next.Broke,
		InputTokens: s.InputTokens + next.InputTokens, OutputTokens: s.OutputTokens + next.OutputTokens,
		CachedTokens: s.CachedTokens + next.CachedTokens,
		USD:          s.USD + next.USD, Unpriced: s.Unpriced + next.Unpriced,
		InFlightMost: max(s.InFlightMost, next.InFlightMost),
		Bounds:       s.Bounds.plus(next.Bounds),
		Latency:      s.Latency.merge(next.Latency),
		Lanes:        mergeLanes(s.Lanes, next.Lanes),
	}
	mean := func(a, b float64) float64 { return weighed(a, s.Span, b, next.Span) }
	sum.InFlight, sum.Waiting = mean(s.InFlight, next.InFlight), mean(s.Waiting, next.Waiting)
	sum.Parked, sum.Delayed = mean(s.Parked, next.Parked), mean(s.Delayed, next.Delayed)
	sum.Allowed = weighed(s.Allowed, s.allowedSpan(), next.Allowed, next.allowedSpan())
	sum.AllowedSpan = s.allowedSpan() + next.allowedSpan()
	return sum
}

// allowedSpan returns the seconds of the span for which Allowed is known: all of them, if
// the sample names no other number.
func (s *Sample) allowedSpan() float64 {
	switch {
	case s.Allowed == 0:
		return 0
	case s.AllowedSpan == 0:
		return s.Span
	}
	return s.AllowedSpan
}

// weighed returns the weighted mean of two values; 0 if they have no weight.
func weighed(a, weightA, b, weightB float64) float64 {
	if weightA+weightB == 0 {
		return 0
	}
	return (a*weightA + b*weightB) / (weightA + weightB)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// plus returns the sum of both.
func (l Ledger) plus(m Ledger) Ledger {
	sum := make(Ledger, max(len(l), len(m)))
	for b, d := range l {
		sum[b] += d
	}
	for b, d := range m {
		sum[b] += d
	}
	return sum
}

// mergeLanes adds lanes by name, and keeps the busiest.
func mergeLanes(a, b []LaneSample) []LaneSample {
	sum := slices.Clone(a)
	for _, next := range b {
		k := slices.IndexFunc(sum, func(l LaneSample) bool { return l.Name == next.Name })
		if k < 0 {
			sum = append(sum, next)
			continue
		}
		next.Answered, next.Throttled = next.Answered+sum[k].Answered, next.Throttled+sum[k].Throttled
		sum[k] = next
	}
	return busiest(sum)
}

// busiest returns at most LanesInSample of the lanes, busiest first.
func busiest(lanes []LaneSample) []LaneSample {
	slices.SortFunc(lanes, func(a, b LaneSample) int {
		return cmp.Or(cmp.Compare(b.Answered+b.Throttled, a.Answered+a.Throttled), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(lanes[:min(len(lanes), LanesInSample)])
}
