package laws

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/model"
	"github.com/headrace/headrace/limiter/plain"
)

// New makes a law. The generator must not be nil.
func New(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	if m := c.Maker; m != nil {
		c.Maker = nil
		return m.NewLaw(c, now, rng)
	}
	switch c.Law {
	case limiter.Plain:
		return plain.New(c, now, rng)
	case limiter.NoLaw:
		return limiter.Unlimited{}
	}
	return model.New(c, now, rng)
}
