package model

import (
	"testing"
	"time"
	"unsafe"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// roomOf returns the memory that a law keeps for single calls, in bytes.
func roomOf(m *Law) (sent, awaited uintptr) {
	return uintptr(cap(m.sends.ring)) * unsafe.Sizeof(slot{}), uintptr(cap(m.fates.ring)) * unsafe.Sizeof(m.fates.ring[0])
}

// load has so many calls leave, evenly spread, and end half a second later: one in
// twenty is refused, if any is, and the others are answered.
func load(m *Law, calls int, gap time.Duration, refusals bool) {
	var left []limiter.News
	for now := noon; calls > 0 || len(left) > 0; now = now.Add(gap) {
		for len(left) > 0 && now.Sub(left[0].Sent) >= time.Second/2 {
			if n := left[0]; refusals && n.Ticket.Number%20 == 0 {
				m.Refused(now, n)
			} else {
				m.Answered(now, n)
			}
			left = left[1:]
		}
		if calls--; calls >= 0 {
			m.Tick(now, false)
			m.Wait(now, one)
			left = append(left, limiter.News{Ticket: m.Sent(now, one, len(left)), Sent: now, Cost: one, Good: true, Present: true, Latency: time.Second / 2})
		}
	}
}

// What a law remembers of its calls is bounded, however many there are and whatever
// becomes of them, and most of it is not there before it is needed.
func TestLawsTakeBoundedRoom(t *testing.T) {
	for name, c := range map[string]struct {
		calls    int
		gap      time.Duration
		refusals bool
		most     uintptr // bytes, of either
	}{
		"one call":                   {1, time.Second, false, 128},
		"200 calls in 20 minutes":    {200, 6 * time.Second, false, 8 << 10},
		"500 a second for 5 minutes": {150_000, 2 * time.Millisecond, false, 64 << 10},
		"likewise, and some refused": {150_000, 2 * time.Millisecond, true, 64 << 10},
		"20,000 a second, and some":  {400_000, 50 * time.Microsecond, true, 64 << 10},
		"20,000 at one moment":       {20_000, 0, false, 64 << 10},
	} {
		m := New(limiter.LawConfig{}, noon, seeded(1))
		if c.gap == 0 { // all at once, and none ends
			for range race.Fewer(c.calls) {
				m.Sent(noon, one, 0)
			}
		} else {
			load(m, race.Fewer(c.calls), c.gap, c.refusals)
		}
		sent, awaited := roomOf(m)
		t.Logf("%s: %d bytes of sends, %d of fates", name, sent, awaited)
		if sent > c.most || awaited > c.most {
			t.Errorf("%s: %d bytes of sends, %d of fates, want at most %d each", name, sent, awaited, c.most)
		}
	}
}
