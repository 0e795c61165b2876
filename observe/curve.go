package observe

import "time"

// A curve is a count over time, at its latest moments. Between two of them it rises evenly;
// before the earliest it was flat.
type curve struct {
	gap    time.Duration // moments nearer to each other are one
	room   int           // moments
	points []point       // a ring, once it is full
	first  int           // the earliest
}

type point struct {
	at time.Duration // since the run began
	n  float64
}

func (c *curve) get(k int) point { return c.points[(c.first+k)%len(c.points)] }

// add notes the count at a moment, which is not before the latest one.
func (c *curve) add(at time.Duration, n float64) {
	p, size := point{at, n}, len(c.points)
	if size >= 2 && at-c.get(size-2).at < c.gap {
		c.points[(c.first+size-1)%size] = p
		return
	}
	if size < c.room {
		c.points = append(c.points, p)
		return
	}
	c.points[c.first] = p
	c.first = (c.first + 1) % size
}

// rise notes the count at a moment, and that it was zero before the first moment.
func (c *curve) rise(before, at time.Duration, n int) {
	if len(c.points) == 0 && before < at {
		c.add(before, 0)
	}
	c.add(at, float64(n))
}

// at returns the count at a moment.
func (c *curve) at(t time.Duration) float64 {
	size := len(c.points)
	if size == 0 {
		return 0
	}
	if t >= c.get(size-1).at {
		return c.get(size - 1).n
	}
	low, high := 0, size-1 // the first moment after t is in (low, high], or the earliest
	for low < high {
		if mid := (low + high) / 2; c.get(mid).at > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	after := c.get(low)
	if low == 0 {
		return after.n
	}
	before := c.get(low - 1)
	return before.n + (after.n-before.n)*float64(t-before.at)/float64(after.at-before.at)
}

// now returns the latest moment; 0: there is none.
func (c *curve) now() time.Duration {
	if len(c.points) == 0 {
		return 0
	}
	return c.get(len(c.points) - 1).at
}

// speed returns the rise a second in the span before the latest moment, or since the
// beginning; 0: no time has passed.
func (c *curve) speed(span time.Duration) float64 {
	now := c.now()
	if span = min(span, now); span <= 0 {
		return 0
	}
	return (c.at(now) - c.at(now-span)) / span.Seconds()
}
