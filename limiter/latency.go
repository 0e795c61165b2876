package limiter

import (
	"slices"
	"time"
)

// What a [Latency] remembers.
const (
	// LatencyWeight is the weight of the newest sample in the mean, λ. At 0.2 a
	// sample's weight is halved after three more and under 1 % after twenty: quick
	// to see a change, too slow to be led by one outlier.
	LatencyWeight = 0.2

	// LatencySamples is the size of the ring for the percentile. With 128 samples
	// six lie above the 95th percentile, so that no single one decides it.
	LatencySamples = 128
)

// A MeanLatency follows how long calls take, exponentially weighted. The zero value is
// ready.
type MeanLatency struct {
	mean  float64 // ns
	count int
}

// Observe adds a sample. A negative one counts as 0.
func (l *MeanLatency) Observe(d time.Duration) {
	x := float64(max(0, d))
	if l.count == 0 {
		l.mean = x
	}
	l.mean += LatencyWeight * (x - l.mean)
	l.count++
}

// Count is how many samples there were in all.
func (l *MeanLatency) Count() int { return l.count }

// Mean is the exponentially weighted mean; 0 before the first sample, and that sample
// after it.
func (l *MeanLatency) Mean() time.Duration { return time.Duration(l.mean) }

// A Latency is a [MeanLatency] that also knows the 95th percentile of the last
// [LatencySamples]. The zero value is ready.
//
// Its memory grows with the samples, as most of many lanes make few calls; and it is
// written to once in youngSamples, as each of these lanes has it elsewhere.
type Latency struct {
	MeanLatency
	young [youngSamples]time.Duration // the latest count%youngSamples; the others are in the ring
	ring  []time.Duration             // sample i is at i%LatencySamples
}

// youngSamples is one line of a processor's cache, and a divisor of LatencySamples.
const youngSamples = 8

// Observe adds a sample. A negative one counts as 0.
func (l *Latency) Observe(d time.Duration) {
	l.young[l.count%youngSamples] = max(0, d)
	l.MeanLatency.Observe(d)
	if l.count%youngSamples > 0 {
		return
	}
	if len(l.ring) < LatencySamples {
		l.ring = append(l.ring, l.young[:]...)
		return
	}
	copy(l.ring[(l.count-youngSamples)%LatencySamples:], l.young[:])
}

// last is the samples that are judged, in three parts and in no order that means
// anything: the young, and the ring but for as many of its oldest as there are young.
func (l *Latency) last() [3][]time.Duration {
	young := l.count % youngSamples
	if l.count < LatencySamples {
		return [3][]time.Duration{l.young[:young], l.ring}
	}
	oldest := (l.count - young) % LatencySamples
	return [3][]time.Duration{l.young[:young], l.ring[:oldest], l.ring[oldest+young:]}
}

// P95 is the 95th percentile by nearest rank: the smallest sample such that at least
// 95 % of those in the ring are not above it. 0 before the first sample. It sorts a
// copy; what is asked for each call is asked of [Latency.P95Over].
func (l *Latency) P95() time.Duration {
	if l.count == 0 {
		return 0
	}
	var room [LatencySamples]time.Duration
	sorted := room[:0]
	for _, part := range l.last() {
		sorted = append(sorted, part...)
	}
	slices.Sort(sorted)
	return sorted[rank95(len(sorted))-1]
}

// P95Over reports whether P95 is greater than limit, without sorting: it is when more
// samples are above the limit than may be above the percentile.
func (l *Latency) P95Over(limit time.Duration) bool {
	n, above := 0, 0
	for _, part := range l.last() {
		n += len(part)
		for _, d := range part {
			if d > limit {
				above++
			}
		}
	}
	return n > 0 && above > n-rank95(n)
}

// Warm is like that of a [Law].
func (l *Latency) Warm() uint64 { return uint64(l.count) + uint64(l.young[youngSamples-1]) }

// rank95 is ⌈0.95·n⌉, in whole numbers so that no rounding moves it.
func rank95(n int) int { return (95*n + 99) / 100 }
