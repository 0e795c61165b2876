package serve

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/internal/queue"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

func TestPaceOfAPool(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	soon, later := now.Add(10*time.Second), now.Add(time.Minute)
	quota := errors.New("no quota left")
	known := func(rate float64) limiter.View { return limiter.View{Rate: rate} }
	flows := batch.LaneStatus{Name: "flows", View: known(2)}
	cools := batch.LaneStatus{Name: "cools", Phase: machine.Cooling, Until: later, View: known(3)}
	holds := batch.LaneStatus{Name: "holds", View: limiter.View{Rate: 1, Hold: soon}}
	stops := batch.LaneStatus{Name: "stops", Phase: machine.Stopped, Cause: quota, View: known(5)}
	free := batch.LaneStatus{Name: "free", View: known(math.Inf(1))}
	narrow := batch.LaneStatus{Name: "narrow", View: known(math.Inf(1)), Window: 4, Latency: 2 * time.Second}
	tokens := batch.LaneStatus{Name: "tokens", View: limiter.View{Rate: 1, Binds: limiter.PaceBound{By: limiter.BoundTokens, Pace: 1}}}
	searched := batch.LaneStatus{Name: "searched", View: limiter.View{Rate: 1, Search: 1}}
	all := []batch.LaneStatus{flows, cools, holds, stops, free, narrow, tokens, searched}
	for _, c := range []struct {
		names []string
		want  queue.Pace
	}{
		{[]string{"flows"}, queue.Pace{Rate: 2}},
		{[]string{"cools"}, queue.Pace{Rate: 3, From: later}},
		{[]string{"cools", "holds"}, queue.Pace{Rate: 4, From: soon}},
		{[]string{"cools", "flows"}, queue.Pace{Rate: 5}},
		{[]string{"stops"}, queue.Pace{Stopped: quota}},
		{[]string{"stops", "flows"}, queue.Pace{Rate: 2}},
		{[]string{"stops", "unused"}, queue.Pace{}},
		{[]string{"stops", "free"}, queue.Pace{}},
		{[]string{"free"}, queue.Pace{}},
		{[]string{"narrow"}, queue.Pace{Rate: 2}},
		{[]string{"tokens"}, queue.Pace{Rate: 1, ByTokens: true}},
		{[]string{"searched"}, queue.Pace{Rate: 1, Searched: true}},
		{[]string{"unused"}, queue.Pace{}},
	} {
		if got := sumPaces(all, c.names, now); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.names, got, c.want)
		}
	}
}
