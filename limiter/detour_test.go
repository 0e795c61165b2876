package limiter

import (
	"testing"
	"time"
)

// What may be in flight follows from how long places are taken, and that is for longer than the
// answer took where the call was made far away.
func TestPlacesThatAreTakenForLonger(t *testing.T) {
	after := func(detour time.Duration) int {
		m := NewModelLaw(LawConfig{}, noon, seeded(1))
		now := noon
		for range 4000 {
			now = now.Add(5 * time.Millisecond)
			m.Tick(now, false)
			n := News{Ticket: m.Sent(now, one, 0), Sent: now, Cost: one, Good: true, Present: true, Latency: 10 * time.Millisecond, Detour: detour}
			m.Answered(now, n)
		}
		return m.Window(now)
	}
	if n := after(0); n != leastWindow {
		t.Errorf("200 calls a second of 10 ms may be %d in flight", n)
	}
	if n := after(490 * time.Millisecond); n < 300 || n > 350 {
		t.Errorf("200 calls a second that take a place for half a second may be %d in flight, want %d and three times 100", n, windowSpare)
	}
}
