package lab

import (
	"math"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// concurrency is the most calls that the user allows in flight: far more than needed, so
// that only the law holds calls back.
const concurrency = 1000

// headrace is the real machine in virtual time.
type headrace struct {
	batch   Batch
	machine *machine.Machine
	left    int
	listen  func(machine.Transition) // nil: nobody
}

const theRun machine.RunID = 1

// Headrace runs a batch's items on the machine, with the law of that lane
// config.
func Headrace(law limiter.LawName) func(Batch, uint64) Law {
	return func(b Batch, seed uint64) Law {
		lane := machine.LaneConfig{Law: law, Local: b.Local, Limits: b.Configured, Rate: limiter.RateConfig{Initial: b.Guess}}
		h := &headrace{batch: b, left: b.Items, machine: machine.New(machine.Config{Lane: lane, Seed: seed})}
		h.machine.Step(start, machine.RunOpened(theRun, machine.RunConfig{Concurrency: b.Concurrency}))
		items := make([]*machine.Item, b.Items)
		for i := range items {
			items[i] = &machine.Item{Seq: uint64(i), Cost: b.cost(i)}
		}
		h.machine.Step(start, machine.Offered(theRun, items))
		h.machine.Step(start, machine.InputEnded(theRun))
		return h
	}
}

// Tell makes the law, if it is the machine or several of them, report its lane's changes as
// they happen. Rivals report nothing.
func Tell(law Law, listen func(machine.Transition)) {
	switch l := law.(type) {
	case *headrace:
		l.listen = listen
	case *processes:
		for _, one := range l.laws {
			Tell(one, listen)
		}
	}
}

// StatusOf returns a picture of the machine and of its run, if the law is the machine; it
// changes nothing.
func StatusOf(law Law, now time.Time) (machine.Status, bool) {
	h, ok := law.(*headrace)
	if !ok {
		return machine.Status{}, false
	}
	s := h.machine.Status(now, 1)
	s.Run = h.machine.RunStatus(theRun)
	return s, true
}

func (h *headrace) Over() bool { return h.left == 0 }

// Ready asks the machine, and reports its transitions before the calls leave. The machine of a lab
// ends no item without a call, so it panics if one ends so.
func (h *headrace) Ready(now time.Time) (calls []Call, wakeAt time.Time) {
	r := h.machine.Ready(now)
	if h.listen != nil {
		for _, t := range r.Transitions {
			h.listen(t)
		}
	}
	for _, g := range r.Grants {
		if g.Verdict != machine.Call {
			panic("lab: an item ended without a call")
		}
		calls = append(calls, Call{Item: int(g.Item.Seq), ref: g})
	}
	return calls, r.WakeAt
}

// Ended settles an item that was answered, with its measured tokens if it has any. Any other end
// hands the item back to the machine: it is not done.
func (h *headrace) Ended(now time.Time, c Call, v sim.Verdict) bool {
	g := c.ref.(machine.Grant)
	o := machine.Outcome{
		Latency: now.Sub(c.Sent), Directed: v.HasRetryAfter, RetryAfter: v.RetryAfter, Sightings: sightings(v, h.batch.Period),
	}
	switch v.Kind {
	case sim.Accepted:
		o.Signal = machine.Succeeded
		if tokens := h.batch.tokens(c.Item); tokens > 0 {
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

// sightings returns what the headers of an answer say, remainders rounded down as providers
// do.
func sightings(v sim.Verdict, period time.Duration) []limiter.Sighting {
	if !v.HasHeaders {
		return nil
	}
	var s []limiter.Sighting
	for d, q := range map[limiter.Dimension]sim.Quota{limiter.Requests: v.Requests, limiter.Tokens: v.Tokens} {
		if q.Limit > 0 {
			s = append(s, limiter.Sighting{
				Dimension: d, Limit: q.Limit, Window: period, Remaining: math.Floor(q.Remaining), Reset: q.Reset, HasReset: true,
			})
		}
	}
	return s
}
