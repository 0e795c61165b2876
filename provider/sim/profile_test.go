package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// 240 prompts through 64 workers that stop for what a refusal asks and then go
// on together meet refusals at once, and are done within 15 to 40 s.
func TestSilentIsSeenToThrottleAndEndsInTime(t *testing.T) {
	m := NewModel(Silent(), epoch)
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

// Demo and Silent are one provider, but that the first one's headers say what is left.
func TestDemoSaysItsLimit(t *testing.T) {
	demo := Demo()
	if !demo.Headers || Silent().Headers {
		t.Errorf("headers: demo %v, silent %v", demo.Headers, Silent().Headers)
	}
	if demo.Headers = false; fmt.Sprint(demo) != fmt.Sprint(Silent()) {
		t.Errorf("%+v\n%+v", demo, Silent())
	}
}
