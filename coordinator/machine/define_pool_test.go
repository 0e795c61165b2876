package machine

import (
	"testing"
	"time"
)

// A run gets pools while it works: their items go out on the lanes of the pool, in turn. A pool that it has stays as it is.
func TestPoolIsDefinedDuringTheRun(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{Pools: []PoolConfig{{Name: "first", Lanes: []string{"x"}}}})
	b.offer(1, "first", 0)
	b.Step(b.now, PoolDefined(1, PoolConfig{Name: "late", Lanes: []string{"y", "z"}}))
	b.Step(b.now, PoolDefined(1, PoolConfig{Name: "late", Lanes: []string{"x"}}))
	b.Step(b.now, PoolDefined(1, PoolConfig{Name: "first", Lanes: []string{"y"}}))
	b.Step(b.now, PoolDefined(7, PoolConfig{Name: "late", Lanes: []string{"x"}})) // of no run
	b.offer(4, "late", 0)
	b.offer(1, "first", 0)
	b.now = b.now.Add(time.Second)
	b.decide()
	got := map[string]int{}
	for _, c := range b.calls {
		got[c.Item.Pool+" on "+c.Lane]++
	}
	if got["late on y"] != 2 || got["late on z"] != 2 || got["first on x"] != 2 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}
