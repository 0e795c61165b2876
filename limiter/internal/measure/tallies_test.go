package measure

import (
	"testing"
	"time"
)

// Failures that are taken back are gone from the sum, and from their slots: what is left of these leaves the sum when they
// are forgotten.
func TestTakeBack(t *testing.T) {
	for _, slots := range []int{fewSlots, MaxSlots} {
		var c Tallies
		width := time.Minute / time.Duration(slots)
		c.Begin(noon, time.Minute, slots)
		add := func(slot int, calls, failed int) {
			for i := range calls {
				c.Add(time.Duration(slot)*width, i >= calls-failed)
			}
		}
		add(0, 10, 1)
		add(1, 10, 3)
		add(2, 4, 4)
		if since := c.TakeBack(6); since != 2*width {
			t.Errorf("%d slots: the row began %v after the origin, want %v", slots, since, 2*width)
		}
		if want := (Tally{Total: 18, Failed: 2}); c.Sum != want { // 4 of slot 2, and 2 of slot 1
			t.Errorf("%d slots: %+v are left, want %+v", slots, c.Sum, want)
		}
		for slot, want := range map[int]Tally{slots: {Total: 8, Failed: 1}, slots + 1: {}, slots + 2: {}} {
			if got := c.CountAt(int64(slot)); got != want {
				t.Errorf("%d slots: at slot %d %+v count, want %+v", slots, slot, got, want)
			}
		}
	}
}
