package forecast

import (
	"strconv"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// start is the time at which every world begins; any moment will do.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// spread is the usual spread of generation times: one call in ten takes more than 1.7
// medians.
const spread = 0.4

const theRun machine.RunID = 1

// world is the machine, a provider for each lane, and the calls between them.
type world struct {
	virtual.Time
	cfg     Config
	sample  *Sample
	machine *machine.Machine
	lanes   []lane
	calls   []int // in the sample, by pool
	left    int
	refused int
	busy    float64 // seconds of calls in flight, while calls leave
}

// lane is one provider's side, and what the world has seen of it.
type lane struct {
	gate     gate
	charge   limiter.Charge
	byPool   []float64       // calls that were let in or are too large
	sentAt   []time.Duration // when each of these left, since the start
	tooLarge int
	drawn    limiter.Cost
	ended    time.Time
}

// newWorld returns a world at its start: all items of the sample are offered, and no call has
// left. A lane of the machine has the limits of its provider.
func newWorld(c Config, s *Sample) *world {
	w := &world{
		Time: virtual.Begin(start), cfg: c, sample: s, left: s.Kept(),
		lanes: make([]lane, len(c.Limits)), calls: make([]int, len(s.total)),
	}
	conf := machine.Config{Lanes: map[string]machine.LaneConfig{}, Seed: c.Seed}
	for i := range w.lanes {
		l := &w.lanes[i]
		l.gate, l.byPool, l.ended = newGate(c.Limits[i], c.Seed+uint64(i)), make([]float64, len(s.total)), start
		lane := c.Lane
		if c.Lanes != nil {
			lane = c.Lanes[i]
		}
		l.charge, lane.Limits = lane.Charge, c.Limits[i]
		conf.Lanes[laneName(i)] = lane
	}
	w.machine = machine.New(conf)
	run := machine.RunConfig{Concurrency: c.Concurrency}
	for i, p := range c.Pools {
		of := machine.PoolConfig{Name: poolName(i), Tiers: p.Tiers, Weights: p.Weights, After: p.After, Spill: p.Spill}
		for _, lane := range p.Lanes {
			of.Lanes = append(of.Lanes, laneName(lane))
		}
		run.Pools = append(run.Pools, of)
	}
	w.machine.Step(start, machine.RunOpened(theRun, run))
	w.offer()
	return w
}

func poolName(i int) string { return "pool " + strconv.Itoa(i) }

func laneName(i int) string { return strconv.Itoa(i) }

// offer offers all items of the sample at once, each to its pool, and ends the input.
func (w *world) offer() {
	items := make([]machine.Item, w.sample.Kept())
	offered := make([]*machine.Item, len(items))
	names := make([]string, len(w.calls))
	for i := range names {
		if names[i] = laneName(i); w.cfg.Pools != nil {
			names[i] = poolName(i)
		}
	}
	for i := range items {
		call := &w.sample.calls[i].Call
		w.calls[call.Pool]++
		items[i] = machine.Item{Seq: uint64(i), Pool: names[call.Pool], Cost: call.Cost, Payload: call}
		offered[i] = &items[i]
	}
	w.machine.Step(start, machine.Offered(theRun, offered))
	w.machine.Step(start, machine.InputEnded(theRun))
}

// run runs the batch to its end.
func (w *world) run() {
	for w.left > 0 {
		r := w.machine.Ready(w.Now())
		for _, g := range r.Grants {
			w.send(g)
		}
		before, flying := w.Age(), w.Planned()
		if !w.Pass(r.WakeAt) {
			panic("forecast: the machine waits for nothing")
		}
		if w.left > flying {
			w.busy += float64(flying) * (w.Age() - before).Seconds()
		}
		w.Do()
	}
}

// send passes a call to its provider, which decides its answer at once.
func (w *world) send(g machine.Grant) {
	call := *g.Item.Payload.(*Call)
	place, _ := strconv.Atoi(g.Lane)
	l := &w.lanes[place]
	call.Cost = l.charge.Of(call.Cost)
	if w.cfg.Lasts != nil && w.cfg.Lasts[place] > 0 {
		call.Latency = w.cfg.Lasts[place]
	}
	kind, took := l.gate.decide(w.Now(), &call)
	o := machine.Outcome{Signal: machine.Succeeded, Latency: took}
	switch kind {
	case sim.RateLimited:
		o.Signal = machine.Throttled
		w.refused++
	case sim.TooLarge:
		o.Signal = machine.Answered
		l.tooLarge++
		w.note(l, call.Pool, limiter.Cost{})
	default:
		w.note(l, call.Pool, call.Cost)
	}
	w.In(took, func() { w.end(g, l, o) })
}

// note counts a call that will be answered.
func (w *world) note(l *lane, pool int, c limiter.Cost) {
	l.byPool[pool]++
	l.sentAt = append(l.sentAt, w.Age())
	l.drawn = limiter.Cost{
		Requests: l.drawn.Requests + c.Requests, Input: l.drawn.Input + c.Input, Output: l.drawn.Output + c.Output,
	}
}

func (w *world) end(g machine.Grant, l *lane, o machine.Outcome) {
	if o.Signal == machine.Throttled {
		w.machine.Step(w.Now(), machine.HandedOver(g, o))
		return
	}
	w.machine.Step(w.Now(), machine.Settled(g, o))
	l.ended = w.Now()
	w.left--
}

// gate is one provider. The simulated one counts requests and tokens together; limits on
// input or output alone are gates of their own.
type gate struct {
	main, input, output *sim.Model
}

// newGate makes a provider with those limits. A model of input or output that has no limit stays
// nil. Only main draws latencies: they lie around a second, and decide stretches them.
func newGate(l limiter.Limits, seed uint64) gate {
	g := gate{main: sim.NewModel(sim.Config{
		RPM: l.RPM, TPM: l.TPM, Seed: seed, Latency: sim.Latency{Median: time.Second, Sigma: spread},
	}, start)}
	if l.InputTPM > 0 {
		g.input = sim.NewModel(sim.Config{TPM: l.InputTPM}, start)
	}
	if l.OutputTPM > 0 {
		g.output = sim.NewModel(sim.Config{TPM: l.OutputTPM}, start)
	}
	return g
}

// decide returns the fate of a call, and the time until its answer. The model draws
// latencies around a second; decide stretches them to the call's own.
func (g gate) decide(now time.Time, c *Call) (sim.Kind, time.Duration) {
	for _, part := range []struct {
		model  *sim.Model
		tokens float64
	}{{g.input, c.Cost.Input}, {g.output, c.Cost.Output}} {
		if part.model == nil {
			continue
		}
		if v := part.model.Decide(now, sim.Call{Tokens: part.tokens}); v.Kind != sim.Accepted {
			return v.Kind, refusal
		}
	}
	v := g.main.Decide(now, sim.Call{Tokens: c.Cost.Tokens()})
	if v.Kind != sim.Accepted {
		return v.Kind, v.Latency
	}
	return v.Kind, time.Duration(v.Latency.Seconds() * float64(c.Latency))
}

// refusal is the time that a refusal takes: a round trip, and no generation.
const refusal = 50 * time.Millisecond
