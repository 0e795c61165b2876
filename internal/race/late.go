package race

import (
	"sync/atomic"
	"testing"
	"time"
)

// Late watches until the test is over how far this machine falls behind its clock, and looks every so often. most returns
// the longest time so far in which nothing ran.
func Late(t testing.TB, every time.Duration) (most func() time.Duration) {
	var longest atomic.Int64
	over, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now := time.Now()
			longest.Store(max(longest.Load(), int64(now.Sub(last)-every)))
			last = now
		}
	}()
	t.Cleanup(func() { close(stop); <-over })
	return func() time.Duration { return time.Duration(longest.Load()) }
}
