package lab

import (
	"math"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// concurrency is what the user allows in flight: far more than is needed, so
// that nothing but the law holds calls back.
const concurrency = 1000

// headrace is the real machine in virtual time.
type headrace struct {
	s       Scenario
	machine *machine.Machine
	left    int
}

const theRun machine.RunID = 1

// Headrace runs a scenario's items on the machine, with the law of that lane
// config.
func Headrace(plain bool) func(Scenario, uint64) Law {
	return func(s Scenario, seed uint64) Law {
		lane := machine.LaneConfig{Limits: s.Told, Model: !plain, Rate: limiter.RateConfig{Initial: s.Guess}}
		h := &headrace{s: s, left: s.Items, machine: machine.New(machine.Config{Lane: lane, Seed: seed})}
		h.machine.Step(start, machine.RunOpened(theRun, machine.RunConfig{Concurrency: concurrency}))
		items := make([]*machine.Item, s.Items)
		for i := range items {
			items[i] = &machine.Item{Seq: uint64(i), Cost: s.cost(i)}
		}
		h.machine.Step(start, machine.Offered(theRun, items))
		h.machine.Step(start, machine.InputEnded(theRun))
		return h
	}
}

func (h *headrace) Over() bool { return h.left == 0 }

func (h *headrace) Ready(now time.Time) (calls []Call, wakeAt time.Time) {
	r := h.machine.Ready(now)
	for _, g := range r.Grants {
		if g.Verdict != machine.Call {
			panic("lab: an item ended without a call")
		}
		calls = append(calls, Call{Item: int(g.Item.Seq), ref: g})
	}
	return calls, r.WakeAt
}

func (h *headrace) Ended(now time.Time, c Call, v sim.Verdict) bool {
	g := c.ref.(machine.Grant)
	o := machine.Outcome{
		Latency: now.Sub(c.Sent), Directed: v.HasRetryAfter, RetryAfter: v.RetryAfter, Sightings: sightings(v),
	}
	switch v.Kind {
	case sim.Accepted:
		o.Signal = machine.Succeeded
		if tokens := h.s.tokens(c.Item); tokens > 0 {
			o.Measured, o.Actual = true, limiter.Cost{Requests: 1, Input: tokens}
		}
		h.machine.Step(now, machine.Settled(g, o))
		h.left--
		return true
	case sim.RateLimited:
		o.Signal = machine.Throttled
	case sim.Overloaded:
		o.Signal = machine.Overloaded
	default:
		o.Signal = machine.Failed
	}
	h.machine.Step(now, machine.HandedOver(g, o))
	return false
}

// sightings are what the headers of an answer say, remainders rounded down as
// providers do.
func sightings(v sim.Verdict) []limiter.Sighting {
	if !v.HasHeaders {
		return nil
	}
	var s []limiter.Sighting
	for d, q := range map[limiter.Dimension]sim.Quota{limiter.Requests: v.Requests, limiter.Tokens: v.Tokens} {
		if q.Limit > 0 {
			s = append(s, limiter.Sighting{
				Dimension: d, Limit: q.Limit, Remaining: math.Floor(q.Remaining), Reset: q.Reset, HasReset: true,
			})
		}
	}
	return s
}
