package lab

import (
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// processes are several runs of one law that share a server and know nothing of each
// other. Each has its part of the items.
type processes struct {
	laws []Law
	part int // items of each but the last
}

// Processes makes n laws, each with an n-th of the batch and with a seed of its own.
func Processes(n int, law func(Batch, uint64) Law) func(Batch, uint64) Law {
	return func(b Batch, seed uint64) Law {
		p := &processes{part: b.Items / n}
		for i := range n {
			p.laws = append(p.laws, law(b.part(i*p.part, p.end(i, n, b.Items)), seed+uint64(i)<<32))
		}
		return p
	}
}

// end returns where the part of process i of n ends: the last takes the remainder of the
// division.
func (p *processes) end(i, n, items int) int {
	if i == n-1 {
		return items
	}
	return (i + 1) * p.part
}

// part returns the batch of the items from..to only, which it counts from 0.
func (b Batch) part(from, to int) Batch {
	b.Items = to - from
	if tokens := b.Tokens; tokens != nil {
		b.Tokens = func(item int) float64 { return tokens(from + item) }
	}
	if thought := b.Thought; thought != nil {
		b.Thought = func(item int) float64 { return thought(from + item) }
	}
	return b
}

// Over is part of [Law].
func (p *processes) Over() bool {
	for _, law := range p.laws {
		if !law.Over() {
			return false
		}
	}
	return true
}

// Ready is part of [Law]: calls of all, and the earliest alarm.
func (p *processes) Ready(now time.Time) (calls []Call, wakeAt time.Time) {
	for i, law := range p.laws {
		if law.Over() {
			continue
		}
		some, wake := law.Ready(now)
		for _, c := range some {
			c.Item += i * p.part
			calls = append(calls, c)
		}
		if !wake.IsZero() && (wakeAt.IsZero() || wake.Before(wakeAt)) {
			wakeAt = wake
		}
	}
	return calls, wakeAt
}

// Ended is part of [Law].
func (p *processes) Ended(now time.Time, c Call, v sim.Verdict) bool {
	i := min(c.Item/p.part, len(p.laws)-1)
	c.Item -= i * p.part
	return p.laws[i].Ended(now, c, v)
}
