package batch

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The ring gives what a list that is sorted and searched each time would give,
// for any arrival within the window.
func TestOrderAgainstSlowTwin(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, window := 1+rng.IntN(60), 1+rng.IntN(12)
		ring := newOrder[int, int](true, window)
		var early, fast, slow []int
		for _, i := range arrivals(rng, n, window) {
			early = append(early, i)
			for at := slices.Index(early, len(slow)); at >= 0; at = slices.Index(early, len(slow)) {
				early = slices.Delete(early, at, at+1)
				slow = append(slow, len(slow))
			}
			for r, ok := ring.push(Result[int, int]{Index: i}); ok; r, ok = ring.pop() {
				fast = append(fast, r.Index)
			}
			if !slices.Equal(fast, slow) {
				t.Fatalf("seed %d, window %d: %v, want %v", seed, window, fast, slow)
			}
		}
		if len(fast) != n {
			t.Fatalf("seed %d: %d of %d came out", seed, len(fast), n)
		}
	}
}

// arrivals are 0 to n-1, none window or more ahead of the lowest that is missing.
func arrivals(rng *rand.Rand, n, window int) []int {
	missing := make([]int, n)
	for i := range missing {
		missing[i] = i
	}
	var all []int
	for len(missing) > 0 {
		ahead := 0
		for ahead < len(missing) && missing[ahead] < missing[0]+window {
			ahead++
		}
		at := rng.IntN(ahead)
		all = append(all, missing[at])
		missing = slices.Delete(missing, at, at+1)
	}
	return all
}

// Without order every result goes straight through, and nothing is kept.
func TestOrderAsTheyCome(t *testing.T) {
	o := newOrder[int, int](false, 1000)
	for _, i := range []int{5, 0, 3} {
		if r, ok := o.push(Result[int, int]{Index: i}); !ok || r.Index != i {
			t.Errorf("%v %v", r, ok)
		}
	}
	if _, ok := o.pop(); ok || o.ring != nil {
		t.Error("something was kept")
	}
}
