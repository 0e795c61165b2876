package observe

import "time"

// A Sample describes a span of a run. Counts are of the span, so that two neighbours merge by
// adding; of gauges it holds the mean, and the most.
type Sample struct {
	At      time.Time // its end
	Elapsed float64   // seconds since the run began, at its end
	Span    float64   // seconds

	Answered, Failed int // items
	Calls            int // that ended
	Throttled, Broke int // of these
	InputTokens      int64
	OutputTokens     int64
	CachedTokens     int64
	USD              float64
	Unpriced         int     // items
	InFlight         float64 // mean
	InFlightMost     int
	Waiting          float64      // mean of the items that waited, parked and delayed ones included
	Parked, Delayed  float64      // means
	Allowed          float64      // items a second that limits, windows and concurrency let through, mean; 0: not known
	AllowedSpan      float64      // seconds of the span for which it is known; 0 while Allowed is not: all of it
	Bounds           Ledger       // the span by what held the run back
	Latency          Buckets      // of answers
	Lanes            []LaneSample // the busiest, at most LanesInSample
}

// LanesInSample is the number of lanes that a sample keeps apart.
const LanesInSample = 4

// A LaneSample is one lane in a sample.
type LaneSample struct {
	Name                string
	Phase               string // at the end of the span
	Answered, Throttled int
	Limits              map[string]float64 // by dimension: what it is believed to let through, units a second, at the end of the span
}
