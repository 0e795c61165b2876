package limiter

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// Bounds of the memory of a [Latency].
const (
	// LatencyWeight is the weight of the newest sample in the mean, λ. At 0.2 a
	// sample's weight is halved after three more and under 1 % after twenty: quick
	// to see a change, too slow to be led by one outlier.
	LatencyWeight = 0.2

	// LatencySamples is the size of the ring for the percentile. With 128 samples
	// six lie above the 95th percentile, so that no single one decides it.
	LatencySamples = 128
)

// A MeanLatency follows the latency of calls, exponentially weighted. The zero value is ready.
type MeanLatency struct {
	mean  float64 // ns
	count int
}

// Observe adds a sample. A negative one counts as 0.
func (l *MeanLatency) Observe(d time.Duration) {
	x := float64(measure.Bounded(max(0, d)))
	if l.count == 0 {
		l.mean = x
	}
	l.mean += LatencyWeight * (x - l.mean)
	l.count++
}

// Count returns the number of samples in all.
func (l *MeanLatency) Count() int { return l.count }

// Mean returns the exponentially weighted mean; 0 before the first sample, and that sample
// after it.
func (l *MeanLatency) Mean() time.Duration { return time.Duration(l.mean) }

// A Latency is a [MeanLatency] that also knows the 95th percentile of the last
// [LatencySamples], to seven digits. The zero value is ready.
type Latency struct {
	MeanLatency
	ring [LatencySamples]float32 // ns; sample i is at i%LatencySamples
}

// Observe adds a sample. A negative one counts as 0.
func (l *Latency) Observe(d time.Duration) {
	l.ring[l.count%LatencySamples] = float32(measure.Bounded(max(0, d)))
	l.MeanLatency.Observe(d)
}

// last returns the samples that are judged, in no meaningful order.
func (l *Latency) last() []float32 { return l.ring[:min(l.count, LatencySamples)] }

// P95 returns the 95th percentile by nearest rank: the smallest sample such that at least 95 %
// of those in the ring are not above it. 0 before the first sample. It sorts a copy.
func (l *Latency) P95() time.Duration {
	if l.count == 0 {
		return 0
	}
	var room [LatencySamples]float32
	sorted := room[:copy(room[:], l.last())]
	slices.Sort(sorted)
	return time.Duration(sorted[rank95(len(sorted))-1])
}

// Warm is like [Warm].
func (l *Latency) Warm() uint64 { return uint64(l.count) + uint64(l.ring[l.count%LatencySamples]) }

// rank95 is ⌈0.95·n⌉, in whole numbers so that no rounding moves it.
func rank95(n int) int { return (95*n + 99) / 100 }
