package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Estimates are judged by what was read, whether or not it was free: that one prompt was
// in a cache says nothing of the next.
func TestCachedInputIsNoBetterEstimate(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{TPM: 60_000}}, time.Unix(0, 0))
	for range 200 {
		c := limiter.Cost{Requests: 1, Input: 1000}
		m.Answered(time.Unix(0, 0), limiter.News{Ticket: m.Sent(time.Unix(0, 0), c, 0), Sent: time.Unix(0, 0), Cost: c, Good: true, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 100}, Cached: 900})
	}
	if m.factor < 0.99 || m.factor > 1.01 {
		t.Errorf("a real token for each estimated one, and a factor of %v", m.factor)
	}
}
