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

// latencySigma is the usual spread of generation times: one call in ten takes more than 1.7
// medians.
const latencySigma = 0.4

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

// newWorld returns a world at its start: all items of the sample are offered, and no call has left. The
// machine knows the limits of its providers.
func newWorld(cfg Config, sample *Sample) *world {
	w := &world{
		Time: virtual.Begin(start), cfg: cfg, sample: sample, left: sample.Kept(),
		lanes: make([]lane, len(cfg.Limits)), calls: make([]int, len(sample.total)),
	}
	machineConfig := machine.Config{Lanes: map[string]machine.LaneConfig{}, Seed: cfg.Seed}
	for i := range w.lanes {
		side := &w.lanes[i]
		side.gate, side.byPool, side.ended = newGate(cfg.Limits[i], cfg.Seed+uint64(i)), make([]float64, len(sample.total)), start
		lane := cfg.Lane
		if cfg.Lanes != nil {
			lane = cfg.Lanes[i]
		}
		side.charge, lane.Limits = lane.Charge, cfg.Limits[i]
		machineConfig.Lanes[laneName(i)] = lane
	}
	w.machine = machine.New(machineConfig)
	run := machine.RunConfig{Concurrency: cfg.Concurrency}
	for i, p := range cfg.Pools {
		pool := machine.PoolConfig{Name: poolName(i), Tiers: p.Tiers, Weights: p.Weights, After: p.After, Spill: p.Spill}
		for _, lane := range p.Lanes {
			pool.Lanes = append(pool.Lanes, laneName(lane))
		}
		run.Pools = append(run.Pools, pool)
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
		ready := w.machine.Ready(w.Now())
		for _, grant := range ready.Grants {
			w.send(grant)
		}
		before, inFlight := w.Age(), w.Planned()
		if !w.Pass(ready.WakeAt) {
			panic("forecast: the machine waits for nothing")
		}
		if w.left > inFlight {
			w.busy += float64(inFlight) * (w.Age() - before).Seconds()
		}
		w.Do()
	}
}

// send passes a call to its provider, which decides the answer at once, and plans its end.
func (w *world) send(grant machine.Grant) {
	call := *grant.Item.Payload.(*Call)
	index, _ := strconv.Atoi(grant.Lane)
	provider := &w.lanes[index]
	call.Cost = provider.charge.Of(call.Cost)
	if w.cfg.Lasts != nil && w.cfg.Lasts[index] > 0 {
		call.Latency = w.cfg.Lasts[index]
	}
	kind, took := provider.gate.decide(w.Now(), &call)
	outcome := machine.Outcome{Signal: machine.Succeeded, Latency: took}
	switch kind {
	case sim.RateLimited:
		outcome.Signal = machine.Throttled
		w.refused++
	case sim.TooLarge:
		outcome.Signal = machine.Answered
		provider.tooLarge++
		w.countAnswered(provider, call.Pool, limiter.Cost{})
	default:
		w.countAnswered(provider, call.Pool, call.Cost)
	}
	w.In(took, func() { w.end(grant, provider, outcome) })
}

// countAnswered counts a call that will be answered.
func (w *world) countAnswered(l *lane, pool int, c limiter.Cost) {
	l.byPool[pool]++
	l.sentAt = append(l.sentAt, w.Age())
	l.drawn = limiter.Cost{
		Requests: l.drawn.Requests + c.Requests, Input: l.drawn.Input + c.Input, Output: l.drawn.Output + c.Output,
	}
}

// end reports the outcome of a call to the machine. A refused call goes back to its lane; any other has
// ended.
func (w *world) end(grant machine.Grant, l *lane, outcome machine.Outcome) {
	if outcome.Signal == machine.Throttled {
		w.machine.Step(w.Now(), machine.HandedOver(grant, outcome))
		return
	}
	w.machine.Step(w.Now(), machine.Settled(grant, outcome))
	l.ended = w.Now()
	w.left--
}

// gate is one provider. The simulated one counts requests and tokens together; limits on
// input or output alone are gates of their own.
type gate struct {
	main, input, output *sim.Model
}

// newGate makes a provider with those limits. A limit on input or output that is not set has no model. Only
// main draws latencies: they lie around a second, and decide stretches them.
func newGate(limits limiter.Limits, seed uint64) gate {
	g := gate{main: sim.NewModel(sim.Config{
		RPM: limits.RPM, TPM: limits.TPM, Seed: seed, Latency: sim.Latency{Median: time.Second, Sigma: latencySigma},
	}, start)}
	if limits.InputTPM > 0 {
		g.input = sim.NewModel(sim.Config{TPM: limits.InputTPM}, start)
	}
	if limits.OutputTPM > 0 {
		g.output = sim.NewModel(sim.Config{TPM: limits.OutputTPM}, start)
	}
	return g
}

// decide returns the fate of a call, and the time until its answer. The model draws latencies around a
// second; decide stretches them to the call's own.
func (g gate) decide(now time.Time, call *Call) (sim.Kind, time.Duration) {
	for _, part := range []struct {
		model  *sim.Model
		tokens float64
	}{{g.input, call.Cost.Input}, {g.output, call.Cost.Output}} {
		if part.model == nil {
			continue
		}
		if verdict := part.model.Decide(now, sim.Call{Tokens: part.tokens}); verdict.Kind != sim.Accepted {
			return verdict.Kind, refusal
		}
	}
	verdict := g.main.Decide(now, sim.Call{Tokens: call.Cost.Tokens()})
	if verdict.Kind != sim.Accepted {
		return verdict.Kind, verdict.Latency
	}
	return verdict.Kind, time.Duration(verdict.Latency.Seconds() * float64(call.Latency))
}

// refusal is the time that a refusal takes: a round trip, and no generation.
const refusal = 50 * time.Millisecond
