package forecast

import (
	"container/heap"
	"strconv"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
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
	cfg     Config
	sample  *Sample
	machine *machine.Machine
	lanes   []lane
	flights flights
	now     time.Time
	left    int
	seq     int
	refused int
	busy    float64 // seconds of calls in flight, while calls leave
}

// lane is one provider's side, and what the world has seen of it.
type lane struct {
	gate               gate
	calls              int // in the sample
	sent, tooLarge     int
	drawn              limiter.Cost
	halfSent, lastSent time.Time
	ended              time.Time
}

// newWorld returns a world at its start: all items of the sample are offered, and no call has
// left. A lane of the machine has the limits of its provider.
func newWorld(c Config, s *Sample) *world {
	w := &world{cfg: c, sample: s, now: start, left: s.Kept(), lanes: make([]lane, len(s.total))}
	conf := machine.Config{Lanes: map[string]machine.LaneConfig{}, Seed: c.Seed}
	for i := range w.lanes {
		l := &w.lanes[i]
		l.gate = newGate(c.Limits[i], c.Seed+uint64(i))
		l.halfSent, l.lastSent, l.ended = start, start, start
		lane := c.Lane
		lane.Limits = c.Limits[i]
		conf.Lanes[laneName(i)] = lane
	}
	w.machine = machine.New(conf)
	w.machine.Step(start, machine.RunOpened(theRun, machine.RunConfig{Concurrency: c.Concurrency}))
	w.offer()
	return w
}

func laneName(i int) string { return strconv.Itoa(i) }

// offer offers all items of the sample at once, each to the pool of its lane, and ends the
// input.
func (w *world) offer() {
	items := make([]machine.Item, w.sample.Kept())
	offered := make([]*machine.Item, len(items))
	names := make([]string, len(w.lanes))
	for i := range names {
		names[i] = laneName(i)
	}
	for i := range items {
		call := &w.sample.calls[i].Call
		w.lanes[call.Lane].calls++
		items[i] = machine.Item{Seq: uint64(i), Pool: names[call.Lane], Cost: call.Cost, Payload: call}
		offered[i] = &items[i]
	}
	w.machine.Step(start, machine.Offered(theRun, offered))
	w.machine.Step(start, machine.InputEnded(theRun))
}

// run runs the batch to its end.
func (w *world) run() {
	for w.left > 0 {
		r := w.machine.Ready(w.now)
		for _, g := range r.Grants {
			w.send(g)
		}
		w.next(r.WakeAt)
	}
}

// send passes a call to its provider, which decides its answer at once.
func (w *world) send(g machine.Grant) {
	call := g.Item.Payload.(*Call)
	l := &w.lanes[call.Lane]
	f := &flight{grant: g, lane: l, left: w.now}
	kind, took := l.gate.decide(w.now, call)
	f.at, f.signal = w.now.Add(took), machine.Succeeded
	switch kind {
	case sim.RateLimited:
		f.signal = machine.Throttled
		w.refused++
	case sim.TooLarge:
		f.signal = machine.Answered
		l.tooLarge++
		l.note(w.now, limiter.Cost{})
	default:
		l.note(w.now, call.Cost)
	}
	w.seq++
	f.seq = w.seq
	heap.Push(&w.flights, f)
}

// note counts a call that will be answered.
func (l *lane) note(now time.Time, c limiter.Cost) {
	l.sent++
	l.lastSent = now
	if l.sent == l.calls/2 {
		l.halfSent = now
	}
	l.drawn = limiter.Cost{
		Requests: l.drawn.Requests + c.Requests, Input: l.drawn.Input + c.Input, Output: l.drawn.Output + c.Output,
	}
}

// next brings about the next answer or the machine's alarm, whichever is earlier.
func (w *world) next(wake time.Time) {
	if len(w.flights) > 0 && (wake.IsZero() || !wake.Before(w.flights[0].at)) {
		w.pass(w.flights[0].at)
		w.end(heap.Pop(&w.flights).(*flight))
		return
	}
	if wake.IsZero() && w.left > 0 {
		panic("forecast: the machine waits for nothing")
	}
	if soon := w.now.Add(time.Nanosecond); soon.After(wake) { // the world asks again, a moment later, for an alarm that is due already
		wake = soon
	}
	w.pass(wake)
}

// pass lets time pass. Calls in flight count while there are more to send.
func (w *world) pass(to time.Time) {
	if w.left > len(w.flights) {
		w.busy += float64(len(w.flights)) * to.Sub(w.now).Seconds()
	}
	w.now = to
}

func (w *world) end(f *flight) {
	o := machine.Outcome{Signal: f.signal, Latency: w.now.Sub(f.left)}
	if f.signal == machine.Throttled {
		w.machine.Step(w.now, machine.HandedOver(f.grant, o))
		return
	}
	w.machine.Step(w.now, machine.Settled(f.grant, o))
	f.lane.ended = w.now
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

// flight is a call on its way.
type flight struct {
	at, left time.Time
	seq      int
	grant    machine.Grant
	lane     *lane
	signal   machine.Signal
}

// flights is a heap, the next to end first; of those at one moment, the first sent.
type flights []*flight

func (q flights) Len() int { return len(q) }
func (q flights) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].seq < q[j].seq
	}
	return q[i].at.Before(q[j].at)
}
func (q flights) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *flights) Push(x any)   { *q = append(*q, x.(*flight)) }
func (q *flights) Pop() any {
	old := *q
	f := old[len(old)-1]
	*q = old[:len(old)-1]
	return f
}
