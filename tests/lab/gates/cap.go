package gates

import (
	"time"

	"github.com/headrace/headrace/internal/virtual"
)

// A Cap refuses calls while so many are at work.
type Cap struct {
	// News is the time for which the oracle leaves a place empty: until the answer is with
	// the client and its next call is here. No law can know of an end before the answer
	// arrives. With answers of 100 ms, a third of the places is on the way.
	News time.Duration

	most int
	ends virtual.Queue[struct{}] // of the calls at work
}

// NewCap makes one.
func NewCap(most int) *Cap { return &Cap{most: max(1, most)} }

// free returns the first moment with a free place, if the news of an end takes so long.
func (c *Cap) free(at, news time.Duration) time.Duration {
	end, busy := c.ends.Next()
	for ; busy && end+news <= at; end, busy = c.ends.Next() {
		c.ends.Take()
	}
	if c.ends.Len() < c.most {
		return at
	}
	return end + news
}

// Ask is part of [Gate].
func (c *Cap) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	wait := c.free(at, 0) - at
	return wait == 0, wait
}

// Take is part of [Gate].
func (c *Cap) Take(_ time.Duration, _ float64, until time.Duration) { c.ends.Put(until, struct{}{}) }

// Refused is part of [Gate].
func (c *Cap) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (c *Cap) Next(at time.Duration, _ float64) time.Duration { return c.free(at, c.News) }
