package gates

import (
	"container/heap"
	"time"
)

// A Cap refuses calls while so many are at work.
type Cap struct {
	// News is the time for which the oracle leaves a place empty: until the answer is with
	// the client and its next call is here. No law can know of an end before the answer
	// arrives. With answers of 100 ms, a third of the places is on the way.
	News time.Duration

	most int
	ends ends
}

// NewCap makes one.
func NewCap(most int) *Cap { return &Cap{most: max(1, most)} }

// free returns the first moment with a free place, if the news of an end takes so long.
func (c *Cap) free(at, news time.Duration) time.Duration {
	for len(c.ends) > 0 && c.ends[0]+news <= at {
		heap.Pop(&c.ends)
	}
	if len(c.ends) < c.most {
		return at
	}
	return c.ends[0] + news
}

// Ask is part of [Gate].
func (c *Cap) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	wait := c.free(at, 0) - at
	return wait == 0, wait
}

// Take is part of [Gate].
func (c *Cap) Take(_ time.Duration, _ float64, until time.Duration) { heap.Push(&c.ends, until) }

// Refused is part of [Gate].
func (c *Cap) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (c *Cap) Next(at time.Duration, _ float64) time.Duration { return c.free(at, c.News) }

// ends holds when the calls at work will end, the earliest first.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
