package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// 240 prompts through 64 workers that stop for what a refusal asks and then go
// on together meet refusals at once, and are done within 15 to 40 s.
func TestDemoIsSeenToThrottleAndEndsInTime(t *testing.T) {
	m := NewModel(Demo(), epoch)
	type call struct {
		at time.Time
		id int
	}
	var queue []call
	for i := range 240 {
		queue = append(queue, call{at: epoch, id: i})
	}
	free, refused, end := slices.Repeat([]time.Time{epoch}, 64), 0, epoch
	held := epoch
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		slices.SortFunc(free, time.Time.Compare)
		now := later(free[0], held)
		v := m.Decide(now, Call{ID: fmt.Sprint(c.id)})
		free[0] = now.Add(v.Latency)
		end = later(end, free[0])
		if v.Kind == RateLimited {
			refused++
			queue = append([]call{c}, queue...)
			held = later(held, free[0].Add(v.RetryAfter))
		}
	}
	if b := m.Books(); b.Accepted != 240 || refused < 2 {
		t.Errorf("%+v, %d refusals", b, refused)
	}
	t.Logf("%v with %d refusals", end.Sub(epoch), refused)
	if d := end.Sub(epoch); d < 15*time.Second || d > 40*time.Second {
		t.Errorf("took %v with %d refusals", d, refused)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
