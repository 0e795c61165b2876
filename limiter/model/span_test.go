package model

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

const endless = time.Duration(math.MaxInt64)

// The longest durations that there are lie ahead: a configured one, or one that a server
// names, never wraps around into the past.
func TestLongestDurationsLieAhead(t *testing.T) {
	for name, until := range map[string]time.Time{
		"model law":            New(limiter.LawConfig{}, noon, seeded(1)).Refused(noon, refusalWithWait(endless)).Until,
		"model law, straggler": New(limiter.LawConfig{}, noon, seeded(1)).Straggled(noon, refusalWithWait(endless)),
	} {
		if until.Sub(noon) < 365*24*time.Hour {
			t.Errorf("%s: until %v", name, until)
		}
	}
}

func refusalWithWait(d time.Duration) limiter.News {
	return limiter.News{Sent: noon, Present: true, Cost: limiter.Cost{Requests: 1}, Directed: true, RetryAfter: d}
}

// A latency that no call can have is a long one, and never less than nothing.
func TestEndlessLatency(t *testing.T) {
	m := New(limiter.LawConfig{}, noon, seeded(1))
	m.Answered(noon, limiter.News{Ticket: m.Sent(noon, limiter.Cost{Requests: 1}, 0), Sent: noon, Present: true, Good: true, Latency: endless, Detour: endless})
	if m.latency < time.Hour.Seconds() {
		t.Errorf("the model takes %v s for the latency", m.latency)
	}
}
