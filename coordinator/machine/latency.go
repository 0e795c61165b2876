package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A latency is a [limiter.Latency] that takes its room with the second sample: most of many
// lanes make few calls. The zero value is ready.
type latency struct {
	first time.Duration
	all   *limiter.Latency // nil: there was one at most
}

// Observe adds a sample, which is more than 0.
func (l *latency) Observe(d time.Duration) {
	switch {
	case l.all != nil:
	case l.first == 0:
		l.first = d
		return
	default:
		l.all = &limiter.Latency{}
		l.all.Observe(l.first)
	}
	l.all.Observe(d)
}

func (l *latency) Mean() time.Duration {
	if l.all == nil {
		return l.first
	}
	return l.all.Mean()
}

func (l *latency) P95() time.Duration {
	if l.all == nil {
		return l.first
	}
	return l.all.P95()
}

func (l *latency) Warm() uint64 {
	if l.all == nil {
		return uint64(l.first)
	}
	return l.all.Warm()
}
