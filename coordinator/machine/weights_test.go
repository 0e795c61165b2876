package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
)

// spread runs items of a pool whose calls take that long on each of its lanes. It returns how
// many each lane took, and when the last one ended.
func spread(items, concurrency int, pool PoolConfig, lanes map[string]LaneConfig, takes map[string]time.Duration) (took map[string]int, in time.Duration) {
	m, w := New(Config{}), virtual.Begin(storyStart)
	for name, c := range lanes {
		m.Step(w.Now(), LaneDefined(name, c))
	}
	m.Step(w.Now(), RunOpened(1, RunConfig{Concurrency: concurrency, Pools: []PoolConfig{pool}}))
	all := make([]*Item, items)
	for i := range all {
		all[i] = &Item{Seq: uint64(i), Pool: pool.Name}
	}
	m.Step(w.Now(), Offered(1, all))
	took = map[string]int{}
	left := items
	for left > 0 {
		r := m.Ready(w.Now())
		for _, g := range r.Grants {
			took[g.Lane]++
			w.In(takes[g.Lane], func() {
				left--
				m.Step(w.Now(), Settled(g, Outcome{Signal: Succeeded, Latency: takes[g.Lane]}))
			})
		}
		if !w.Pass(r.WakeAt) {
			panic("the pool waits for nothing")
		}
		for w.Do() {
		}
	}
	return took, w.Age()
}

// While both lanes have room, one of weight 3 takes three items of four, however few places the
// run has. In a pool with tiers the same holds for those of a tier.
func TestWeightsWithRoomOnBothLanes(t *testing.T) {
	lanes := map[string]LaneConfig{"heavy": {Law: limiter.NoLaw}, "light": {Law: limiter.NoLaw}, "spare": {Law: limiter.NoLaw}}
	takes := map[string]time.Duration{"heavy": time.Second, "light": time.Second}
	for _, pool := range []PoolConfig{
		{Name: "p", Lanes: []string{"heavy", "light"}, Weights: []int{3, 1}},
		{Name: "p", Lanes: []string{"light", "heavy"}, Weights: []int{1, 3}},
		{Name: "p", Lanes: []string{"heavy", "light", "spare"}, Weights: []int{3, 1, 9}, Tiers: []int{0, 0, 1}},
	} {
		for _, concurrency := range []int{1, 2, 3, 7, 64} {
			took, _ := spread(4000, concurrency, pool, lanes, takes)
			if n := took["heavy"]; n < 2960 || n > 3040 || took["spare"] > 0 {
				t.Errorf("%v, %d at once: took %v", pool, concurrency, took)
			}
		}
	}
}

// A lane at its limit leaves its turns to the other one: both do all that they can.
func TestWeightsWithTheHeavyLaneAtItsLimit(t *testing.T) {
	rpm := func(n float64) LaneConfig {
		return LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: n}, Rate: limiter.RateConfig{Initial: n / 60, Ceiling: n / 60}}
	}
	took, in := spread(9000, 64, PoolConfig{Name: "p", Lanes: []string{"heavy", "light"}, Weights: []int{3, 1}},
		map[string]LaneConfig{"heavy": rpm(300), "light": rpm(600)}, map[string]time.Duration{"heavy": time.Second, "light": time.Second})
	if want := 600 * time.Second; in.Seconds() > want.Seconds()/0.98 {
		t.Errorf("9000 items at 900 a minute took %v, want %v: %v", in, want, took)
	}
}

// Turns that bring no call are not counted: else 3 : 1 could become 1 : 1.
func TestTurnsWithoutACallAreNotCounted(t *testing.T) {
	w := newTiers(PoolConfig{Lanes: []string{"a", "b"}, Weights: []int{3, 1}})
	var order []int
	for range 8 {
		w.heavy.addReady(0, false)
		w.heavy.addReady(1, false)
		for range 3 {
			w.heavy.next()
		}
		k := w.heavy.next()
		w.bookTurn(k)
		w.heavy.forget()
		order = append(order, k)
	}
	if want := []int{0, 0, 1, 0, 0, 0, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("turns %v, want %v", order, want)
	}
}

// Weights that mean nothing are refused. Equal ones are none.
func TestWeightsAreValidated(t *testing.T) {
	pool := func(weights ...int) PoolConfig {
		return PoolConfig{Name: "p", Lanes: []string{"a", "b"}, Weights: weights}
	}
	for _, c := range []struct {
		weights []int
		ok      bool
	}{{nil, true}, {[]int{1, MaxWeight}, true}, {[]int{0, 1}, false}, {[]int{1, MaxWeight + 1}, false}, {[]int{1}, false}} {
		err := (RunConfig{Pools: []PoolConfig{pool(c.weights...)}}).Validate()
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "weight") {
			t.Errorf("%v: %v", c.weights, err)
		}
	}
	if newTiers(pool(7, 7)) != nil {
		t.Error("equal weights make a pool of weights")
	}
}
