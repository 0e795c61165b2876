package measure

import (
	"math"
	"time"
)

// The window of a [Meter]. Ten seconds average over the gaps between calls that take seconds,
// and still follow a change of limit within a breath. One second is the finest grain at which
// providers count.
const (
	meterWindow  = 10 * time.Second
	meterBuckets = 10
)

// A Meter counts the events per second of recent times. It looks back over meterWindow in
// buckets of one second, and over less while it is younger. The zero value is ready.
//
// It has a fixed shape and no counts of failures, to be small: a lane has three meters. The part
// of a meter that each call touches should fit a line of a processor's cache.
type Meter struct {
	ring    [meterBuckets]uint32 // ring[i%meterBuckets] is bucket i, of those before the head
	filling uint32
	total   uint32 // of filling and the ring
	head    int64  // the bucket that is filling
	origin  time.Time
	begun   bool
}

const meterWidth = meterWindow / meterBuckets

// Add counts one event.
func (m *Meter) Add(now time.Time) {
	if !m.begun {
		m.begun, m.origin = true, now
	}
	bucket := m.bucketAt(now.Sub(m.origin))
	if bucket != m.head {
		m.forward(bucket)
	}
	m.filling++
	m.total++
}

// forward makes a later bucket the head, and subtracts the buckets that are now too old.
func (m *Meter) forward(bucket int64) {
	m.ring[m.head%meterBuckets], m.filling = m.filling, 0
	for i := m.head + 1; i <= min(bucket, m.head+meterBuckets); i++ {
		m.total -= m.ring[i%meterBuckets]
		m.ring[i%meterBuckets] = 0
	}
	m.head = bucket
}

// bucketAt returns the bucket that a moment falls in; the head if the clock went back.
func (m *Meter) bucketAt(since time.Duration) int64 {
	if since < meterWidth*time.Duration(m.head+1) { // nearly always, and saves the division
		return m.head
	}
	return int64(since / meterWidth)
}

// PerSecond returns the mean rate over the time really covered, 0 if nothing happened in it.
// The covered time counts as one second at least: ten calls in the first millisecond are ten a
// second and not ten thousand.
func (m *Meter) PerSecond(now time.Time) float64 {
	if !m.begun {
		return 0
	}
	since := now.Sub(m.origin)
	bucket := m.bucketAt(since)
	first := time.Duration(max(0, bucket-meterBuckets+1)) * meterWidth
	covered := max(time.Duration(bucket)*meterWidth, since) - first
	return float64(m.countAt(bucket)) / max(1, covered.Seconds())
}

// countAt returns the count that the meter would have with bucket filling. The bucket must be at or
// after the head.
func (m *Meter) countAt(bucket int64) uint32 {
	if bucket-m.head >= meterBuckets {
		return 0
	}
	n := m.total
	for i := max(0, m.head-meterBuckets+1); i <= min(m.head, bucket-meterBuckets); i++ {
		n -= m.ring[i%meterBuckets]
	}
	return n
}

// Preset sets the meter as if so many events per second had happened for the whole window.
func (m *Meter) Preset(now time.Time, perSecond float64) {
	n := uint32(math.Round(perSecond))
	if n == 0 {
		return
	}
	*m = Meter{begun: true, origin: now.Add(-meterWindow), head: meterBuckets - 1, filling: n, total: meterBuckets * n}
	for i := range m.ring[:meterBuckets-1] {
		m.ring[i] = n
	}
}
