package coordinator

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// read is a clock that counts how often it was read.
type read struct {
	clockwork.Clock
	times int
}

func (c *read) Now() time.Time {
	c.times++
	return c.Clock.Now()
}

// A pass hears what has come together, and no more than its bound before it decides: else
// news that never stops would keep the answers to it from ever leaving.
func TestPassHearsABurst(t *testing.T) {
	for messages, passes := range map[int]int{1: 1, maxBurst + 1: 1, maxBurst + 2: 2, 2*maxBurst + 2: 2, 2*maxBurst + 3: 3} {
		clock := &read{Clock: clockwork.NewFakeClock()}
		c := New(Config{Clock: clock, Mailbox: messages})
		for range messages - 1 {
			c.Tell("lane", nil)
		}
		c.Close()
		newLoop(c).run()
		if got := clock.times - 1; got != passes { // once more for the end
			t.Errorf("%d messages are heard in %d passes, want %d", messages, got, passes)
		}
	}
}
