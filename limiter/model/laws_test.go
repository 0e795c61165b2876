package model

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/plain"
)

// newLaw makes the law that is named: both are put before the same servers.
func newLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	if c.Law == limiter.Plain {
		return plain.New(c, now, rng)
	}
	return New(c, now, rng)
}
