package model

import (
	"testing"

	"github.com/headrace/headrace/limiter"
)

// Bursts of another client cost the rate for seconds only: soon after he has gone, calls leave at it again.
func TestNeighbourCostsNoRate(t *testing.T) {
	for seed := range uint64(4) {
		p := fullPail(10, 10)
		w := newLawWorld(limiter.LawConfig{}, seed, bucketServer(p, 0.5))
		w.run(150, 1e9)
		p.takes(w.now, max(0, p.level)) // all of it, at once
		w.run(160, 1e9)
		p.takes(w.now, max(0, p.level))
		w.run(190, 1e9)
		near(t, "calls a second after the bursts", w.between(170, 190), 10, 3)
	}
}
