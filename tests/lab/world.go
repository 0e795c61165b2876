package lab

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// start is when every world begins; any moment will do.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// hop is how long a message takes from us to the provider or back: a region
// away, and never twice the same.
const hop = 25 * time.Millisecond

// timeout is how long a call may hang.
const timeout = 60 * time.Second

// A Call is one call of an item on its way.
type Call struct {
	Item int
	Sent time.Time
	ref  any // the law's own
}

// A Law is what a world is about: it is given a batch, decides when calls leave,
// and hears how they end.
type Law interface {
	// Ready is asked after each event. It answers with the calls that leave now,
	// and when it wants to be asked again if nothing happens.
	Ready(now time.Time) (calls []Call, wakeAt time.Time)
	// Ended says how a call ended. It reports whether the item is done.
	Ended(now time.Time, c Call, v sim.Verdict) (done bool)
	// Over reports whether nothing is left.
	Over() bool
}

// Figures are what came of a world.
type Figures struct {
	Makespan  time.Duration
	Optimum   time.Duration
	Refused   int // 429
	Wasted    int // other calls that brought nothing: outages, hangs, errors
	Attempts  int // most refusals that one item met
	Done      int
	Repeated  int // items that were answered more than once
	Recovered time.Duration
}

// Ratio is the makespan over the fluid optimum.
func (f Figures) Ratio() float64 { return f.Makespan.Seconds() / f.Optimum.Seconds() }

// event is something that will happen: a call arrives at the provider, an answer
// arrives here, or the neighbour calls.
type event struct {
	at      time.Time
	seq     int
	call    Call
	verdict *sim.Verdict // nil: the call arrives
	foreign bool
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].seq < q[j].seq
	}
	return q[i].at.Before(q[j].at)
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// world is one provider, one law, and the messages between them.
type world struct {
	s        Scenario
	law      Law
	provider *sim.Model
	rng      *rand.Rand
	queue    events
	seq      int
	now      time.Time
	figures  Figures
	answered []uint8
	refusals []uint8
	foreign  []time.Time // accepted calls of the neighbour
	accepted []time.Time // ours
	last     time.Time
}

// Run runs one law in one scenario.
func Run(s Scenario, law Law, seed uint64) Figures {
	w := &world{
		s: s, law: law, now: start,
		provider: sim.NewModel(s.provider(seed), start),
		rng:      rand.New(rand.NewPCG(seed, 7)),
		answered: make([]uint8, s.Items), refusals: make([]uint8, s.Items),
	}
	w.neighbour()
	w.run()
	w.figures.Makespan = w.last.Sub(start)
	w.figures.Optimum = s.optimum(w.foreign)
	w.figures.Recovered = s.recovery(w.accepted)
	return w.figures
}

// run lets the world happen. One that never ends is stopped at twenty times what
// it should take.
func (w *world) run() {
	tooLate := start.Add(20*w.s.optimum(nil) + time.Hour)

	for !w.law.Over() && w.now.Before(tooLate) {
		calls, wake := w.law.Ready(w.now)
		for _, c := range calls {
			c.Sent = w.now
			w.push(event{at: w.now.Add(w.hop()), call: c})
		}
		if w.law.Over() {
			return
		}
		w.next(wake)
	}
}

func (w *world) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.queue, e)
}

func (w *world) hop() time.Duration {
	return time.Duration(float64(hop) * (0.8 + 0.4*w.rng.Float64()))
}

// next lets the earlier of the next event and the law's alarm happen.
func (w *world) next(wake time.Time) {
	if len(w.queue) == 0 && wake.IsZero() {
		panic("lab: the law waits for nothing")
	}
	if len(w.queue) == 0 || (!wake.IsZero() && wake.Before(w.queue[0].at)) {
		if wake.After(w.now) {
			w.now = wake
		} else {
			w.now = w.now.Add(time.Nanosecond)
		}
		return
	}
	e := heap.Pop(&w.queue).(event)
	w.now = e.at
	switch {
	case e.foreign:
		w.neighbourCalls()
	case e.verdict == nil:
		w.arrive(e.call)
	default:
		w.end(e.call, *e.verdict)
	}
}

func (w *world) arrive(c Call) {
	v := w.provider.Decide(w.now, sim.Call{Tokens: w.s.tokens(c.Item)})
	took := v.Latency
	if v.Hang {
		took = timeout
	}
	w.push(event{at: w.now.Add(took + w.hop()), call: c, verdict: &v})
	if v.Kind == sim.Accepted {
		w.accepted = append(w.accepted, w.now)
	}
}

func (w *world) end(c Call, v sim.Verdict) {
	switch v.Kind {
	case sim.Accepted:
		w.last = w.now
		w.answered[c.Item]++
		if w.answered[c.Item] > 1 {
			w.figures.Repeated++
		}
	case sim.RateLimited:
		w.figures.Refused++
		w.refusals[c.Item]++
		w.figures.Attempts = max(w.figures.Attempts, int(w.refusals[c.Item]))
	default:
		w.figures.Wasted++
	}
	if w.law.Ended(w.now, c, v) {
		w.figures.Done++
	}
}

// neighbour starts the other client of the same limit: it calls in bursts, a
// good part of the limit for some seconds, then nothing for some.
func (w *world) neighbour() {
	if w.s.Neighbour > 0 {
		w.push(event{at: start.Add(w.s.neighbourGap(start, w.rng)), foreign: true})
	}
}

func (w *world) neighbourCalls() {
	if v := w.provider.Decide(w.now, sim.Call{Tokens: w.s.tokens(0)}); v.Kind == sim.Accepted {
		w.foreign = append(w.foreign, w.now)
	}
	w.push(event{at: w.now.Add(w.s.neighbourGap(w.now, w.rng)), foreign: true})
}
