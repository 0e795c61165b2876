package machine

import (
	"slices"
	"testing"
)

// The same facts at the same times give the same decisions, word for word.
func TestSameFactsSameDecisions(t *testing.T) {
	for seed := range uint64(100) {
		var stories [2]tail
		for i := range stories {
			simulate(newPlan(seed, 1<<30, 0), stories[i].add)
		}
		if !slices.Equal(stories[0].lines, stories[1].lines) {
			t.Fatalf("seed %d tells two stories", seed)
		}
	}
}
