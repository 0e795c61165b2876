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

// allowance is how late an instant may have been read, on what was seen so far: twice the
// worst, as two processes read, and a quantum more for what the watch itself missed.
func (l *lateness) allowance() time.Duration {
	return 2*time.Duration(l.most.Load()) + 100*time.Millisecond
}
