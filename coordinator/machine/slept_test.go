package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Time in which the computer slept is booked as that, whatever held the run back before, and
// what held it back goes on to.
func TestSleepIsBookedAsSleep(t *testing.T) {
	b := newBed(LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Second}}, RunConfig{Concurrency: 1000})
	b.offer(200, "", 0)
	b.wait(3 * time.Second)
	from := b.now.Add(500 * time.Millisecond)
	b.now = from.Add(time.Minute)
	b.Step(b.now, Slept(from))
	b.decide()
	b.wait(2 * time.Second)
	l := b.RunStatus(1).Ledger
	if l[BoundSlept] != time.Minute || l[BoundRequests] != 5500*time.Millisecond || l.Sum() != b.now.Sub(storyStart) {
		t.Errorf("%v of %v", l, b.now.Sub(storyStart))
	}
}

// A moment at which it fell asleep that is before the run began, or before what was heard
// last, takes no time from what was booked.
func TestSleepTakesNoTimeThatWasBooked(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{Concurrency: 1000})
	b.wait(time.Second)
	b.Step(b.now, Paused(1))
	b.decide()
	b.now = b.now.Add(10 * time.Second)
	b.Step(b.now, Slept(storyStart.Add(-time.Hour)))
	if l := b.RunStatus(1).Ledger; l[BoundInput] != time.Second || l[BoundSlept] != 10*time.Second || l[BoundPaused] != 0 {
		t.Error(l)
	}
}
