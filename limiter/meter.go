package limiter

import "time"

// The window of a [Meter]. Ten seconds average over the gaps between calls that take
// seconds, and still follow a change of limit within a breath; one second is the
// finest grain at which providers count.
const (
	MeterWindow  = 10 * time.Second
	meterBuckets = 10
)

// A Meter says how many events per second there were of late. It looks back over
// [MeterWindow] in buckets of one second, and over less while it is younger. The zero
// value is ready.
type Meter struct{ events window }

// Add counts one event.
func (m *Meter) Add(now time.Time) {
	if !m.events.begun() {
		m.events.begin(now, MeterWindow, meterBuckets)
	}
	m.events.add(now, false)
}

// PerSecond is the mean rate over the time really covered, 0 if nothing happened in
// it. At least one second is taken to be covered: ten calls in the first millisecond
// are ten a second and not ten thousand.
func (m *Meter) PerSecond(now time.Time) float64 {
	w := &m.events
	if !w.begun() {
		return 0
	}
	slot := w.slotAt(now)
	first := time.Duration(max(0, slot-w.slots+1)) * w.width
	covered := max(time.Duration(slot)*w.width, now.Sub(w.origin)) - first
	return float64(w.countAt(slot).total) / max(1, covered.Seconds())
}
