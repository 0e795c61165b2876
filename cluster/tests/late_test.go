package tests

import (
	"sync/atomic"
	"testing"
	"time"
)

// A lateness knows how far this machine has fallen behind its clock.
type lateness struct{ most atomic.Int64 }

// watchEvery is the time between two looks at the clock: some scheduling quanta of a busy machine.
const watchEvery = 10 * time.Millisecond

// watchLateness looks until the test is over.
func watchLateness(t *testing.T) *lateness {
	l, over, stop := &lateness{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now := time.Now()
			l.most.Store(max(l.most.Load(), int64(now.Sub(last)-watchEvery)))
			last = now
		}
	}()
	t.Cleanup(func() { close(stop); <-over })
	return l
}

// bunched returns how many calls a provider of this rate may refuse because this machine stood still: all calls held up
// meanwhile leave at once when it goes on. A stall within jitter causes no refusal: laws keep half a second of refill
// at the least for that.
func (l *lateness) bunched(rate float64) int {
	most := time.Duration(l.most.Load())
	if most < jitter {
		return 0
	}
	return int(rate * most.Seconds())
}

// jitter is the delay of a machine that has little else to do. Beyond it the tests assert nothing of what the machine
// can do in a second.
const jitter = 200 * time.Millisecond

// allowance bounds the delay of an instant's reading, by the delays seen so far. It is twice the worst, as two
// processes read, and a quantum more for what the watch itself missed.
func (l *lateness) allowance() time.Duration {
	return 2*time.Duration(l.most.Load()) + 100*time.Millisecond
}
