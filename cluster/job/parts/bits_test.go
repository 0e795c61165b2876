package parts

import (
	"math/rand/v2"
	"testing"
)

// A set holds what was put in, and nothing else: as a map would.
func TestSetIsASet(t *testing.T) {
	rng, slow := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	var fast bitSet
	for range 5000 {
		n := rng.IntN(700)
		if fast.has(n) != slow[n] || fast.add(n) == slow[n] {
			t.Fatalf("%d: the map says %t", n, slow[n])
		}
		if slow[n] = true; fast.len != len(slow) {
			t.Fatalf("%d numbers, the map has %d", fast.len, len(slow))
		}
	}
	if fast.has(-1) || fast.has(1<<40) || !fast.has(0) {
		t.Error("what is far out is there")
	}
}
