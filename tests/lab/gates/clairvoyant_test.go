package gates

import (
	"testing"
	"time"
)

const hop = 25 * time.Millisecond

// task has answers of a second exactly, and hands enough.
func task(items int, g ...Gate) Task {
	return Task{Config: Config{Gates: g, Answers: Answers{Median: time.Second}}, Items: items, Hands: 1000, Hop: hop}
}

// What can be reckoned by hand: the calls that the first moment lets in, the rest
// as the limit flows, an answer and two hops.
func TestOptimumByHand(t *testing.T) {
	capped := NewCap(5)
	capped.News = 2 * hop
	down := task(100, NewBucket(Steady(10), time.Second))
	down.Outages = []Outage{{From: time.Second, For: time.Minute}}
	few := task(100)
	few.Hands = 10
	shared := task(100, NewBucket(Steady(10), time.Second))
	for range 50 {
		shared.Neighbours = append(shared.Neighbours, time.Second)
	}
	for name, c := range map[string]struct {
		task Task
		want float64 // seconds, the answer and the hops apart
	}{
		"nothing":                 {task(100), 0},
		"bucket":                  {task(100, NewBucket(Steady(10), 5*time.Second)), 5},
		"spacing":                 {task(101, NewSpacing(Steady(10))), 10},
		"windows":                 {task(25, NewWindow(10, 10*time.Second)), 20 - 0.025}, // counted from the server's zero
		"sliding":                 {task(25, NewSliding(10, 10*time.Second)), 20},
		"cap":                     {task(20, capped), 3 * 1.05},
		"hands":                   {few, 9 * 1.05},
		"two gates":               {task(60, NewBucket(Steady(10), 5*time.Second), NewBucket(Steady(2), 5*time.Second)), 25},
		"replicas":                {task(40+64, NewReplicas(10, 4*time.Second, 1)), 6.4},
		"an outage":               {down, 60.975 + 7.05},
		"a neighbour":             {shared, 14},
		"halves":                  {task(120, NewBucketOf(Turning(10, 0.5, 10*time.Second), 1)), 10 + 19.0/5},
		"asks for all that grows": {task(2+40+80+160, NewScaler(10)), 60},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want + 1.05
			if got := c.task.Optimum().Seconds(); got < want-0.11 || got > want+0.11 {
				t.Errorf("%.3f s, not %.3f", got, want)
			}
		})
	}
}

// No clairvoyant beats what the gates let through, nor the work that is there,
// nor his own hands, however they are put together.
func TestOptimumIsPhysical(t *testing.T) {
	const items = 3000
	mean := Answers{Median: time.Second, Sigma: 0.5}.Mean().Seconds()
	for seed := range uint64(5) {
		x := task(items, NewCap(20), NewBucket(Steady(25), 5*time.Second), NewWindow(280, 10*time.Second))
		x.Seed, x.Answers, x.Hands = seed, Answers{Median: time.Second, Sigma: 0.5}, 64
		got := x.Optimum().Seconds()
		for what, least := range map[string]float64{
			"bucket":  (items - 125) / 25.0,
			"windows": items/280*10 - 10,
			"cap":     0.95 * items * mean / 20,
			"hands":   0.95 * items * mean / 64,
		} {
			if got < least {
				t.Errorf("seed %d: %.1f s, and the %s takes %.1f s", seed, got, what, least)
			}
		}
		if most := 1.2 * items * mean / 20; got > most {
			t.Errorf("seed %d: %.1f s, and the cap alone is %.1f s", seed, got, most)
		}
	}
}

// What breaks is done again by the clairvoyant too: the calls that the server breaks, by
// the same draw, each of which took a place for its time.
func TestOptimumPaysForBreaks(t *testing.T) {
	const items, share = 4000, 0.1
	var broken float64
	for seed := range uint64(3) {
		x := task(items, NewCap(8))
		x.Seed, x.Breaks = seed, share
		whole := x
		whole.Gates, whole.Breaks = []Gate{NewCap(8)}, 0
		b, calls := newBreaks(share, seed), 0
		for done := 0; done < items; calls++ {
			if !b.next() {
				done++
			}
		}
		ratio := x.Optimum().Seconds() / whole.Optimum().Seconds()
		if want := float64(calls) / items; ratio < want-0.002 || ratio > want+0.005 {
			t.Errorf("seed %d: %.4f times as long, and %.4f times the calls", seed, ratio, want)
		}
		broken += float64(calls-items) / float64(calls) / 3
	}
	if broken < 0.9*share || broken > 1.1*share {
		t.Errorf("%.3f of the calls broke", broken)
	}
}

// One that breaks again and again is over when it is.
func TestErrands(t *testing.T) {
	e := errands{items: 2}
	_, _ = e.next(0)
	e.again(errand{0, 3})
	e.again(errand{5, 2})
	for _, want := range []struct {
		item     int
		from, at time.Duration
	}{{1, 1, 1}, {5, 1, 2}, {0, 4, 4}} {
		if got, at := e.next(want.from); got.item != want.item || at != want.at {
			t.Errorf("item %d at %d, want %+v", got.item, at, want)
		}
	}
	if e.any() {
		t.Error("something is left")
	}
}

// Tokens are charged by the item, in order.
func TestOptimumInTokens(t *testing.T) {
	b := NewBucket(Steady(100), 10*time.Second)
	b.Tokens = true
	x := task(30, b)
	x.Tokens = func(item int) float64 { return float64(100 + 100*(item%2)) }
	if got := x.Optimum().Seconds() - 1.05; got < 34.9 || got > 35.1 {
		t.Errorf("4,500 tokens, a thousand saved up and a hundred a second: %.2f s", got)
	}
}
