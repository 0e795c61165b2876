package tests

import (
	"sync/atomic"
	"testing"
	"time"
)

// A lateness knows how far this machine has fallen behind its clock.
type lateness struct{ most atomic.Int64 }

// watchEvery is how often the clock is looked at: some scheduling quanta of a busy machine.
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

// bunched is how many calls of a provider that grants so many a second may be refused because this machine stood
// still: all that should have left meanwhile leaves at once when it goes on. A stall within jitter refuses nobody: laws keep
// half a second of refill at the least for that.
func (l *lateness) bunched(rate float64) int {
	most := time.Duration(l.most.Load())
	if most < jitter {
		return 0
	}
	return int(rate * most.Seconds())
}

// jitter is how late a machine may be that has little else to do; beyond it what it can do in a second is not
// asserted.
const jitter = 200 * time.Millisecond

// allowance is how late an instant may have been read, on what was seen so far: twice the
// worst, as two processes read, and a quantum more for what the watch itself missed.
func (l *lateness) allowance() time.Duration {
	return 2*time.Duration(l.most.Load()) + 100*time.Millisecond
}
