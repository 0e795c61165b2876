package bits

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A set holds what was put in, and nothing else: as a map would.
func TestSetIsASet(t *testing.T) {
	rng, slow := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	var fast Set
	for range 5000 {
		n := rng.IntN(700)
		if fast.Has(n) != slow[n] || fast.Add(n) == slow[n] {
			t.Fatalf("%d: the map says %t", n, slow[n])
		}
		slow[n] = true
		if fast.Len() != len(slow) {
			t.Fatalf("%d numbers, the map has %d", fast.Len(), len(slow))
		}
	}
	if fast.Has(-1) || fast.Has(1<<40) || !fast.Has(0) {
		t.Error("what is far out is there")
	}
	all := slices.Collect(fast.All())
	if !slices.IsSorted(all) || len(all) != len(slow) {
		t.Errorf("%v", all)
	}
	for n := range fast.All() {
		if n > 10 {
			break
		}
	}
}
