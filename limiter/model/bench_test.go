package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// What an answer with headers costs while many calls are in flight: no more with
// 4,096 of them than with 64.
func BenchmarkSightings(b *testing.B) {
	for _, inFlight := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			law, now := New(limiter.LawConfig{}, noon, seeded(1)), noon
			cost := limiter.Cost{Requests: 1, Input: 100, Output: 50}
			left := make([]limiter.News, inFlight)
			send := func(i int) {
				now = now.Add(time.Millisecond)
				left[i] = limiter.News{Ticket: law.Sent(now, cost, 0), Sent: now, Cost: cost, Good: true, Present: true}
			}
			for i := range left {
				send(i)
			}
			seen := []limiter.Sighting{
				{Dimension: limiter.Requests, Limit: 100_000, Window: time.Minute, Remaining: 90_000},
				{Dimension: limiter.Tokens, Limit: 9_000_000, Window: time.Minute, Remaining: 8_000_000},
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % inFlight {
				left[i].Sightings = seen
				law.Answered(now, left[i])
				send(i)
			}
		})
	}
}
