package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/provider/sim"
)

// Start is the time at which every world begins; any moment will do.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var start = Start

// Hop is the time that a message takes from us to the provider or back, where a world does
// not say otherwise: a region away, and never twice the same.
const Hop = 25 * time.Millisecond

// timeout is the longest that a call may hang.
const timeout = 60 * time.Second

// A Call is one call of an item on its way.
type Call struct {
	Item int
	Sent time.Time
	ref  any // the law's own
}

// A Law is the subject of a world: it receives a batch, decides when calls leave, and learns
// how they end.
type Law interface {
	// The world calls Ready after each event. It returns the calls that leave now, and when
	// to call it again if nothing happens.
	Ready(now time.Time) (calls []Call, wakeAt time.Time)
	// Ended records how a call ended. It reports whether the item is done.
	Ended(now time.Time, c Call, v sim.Verdict) (done bool)
	// Over reports whether nothing is left.
	Over() bool
}

// Figures are the results of a world.
type Figures struct {
	Makespan  time.Duration
	Optimum   time.Duration
	Refused   int // calls refused for now: 429, or the provider's other refusal
	Wasted    int // other calls that brought nothing: outages, hangs, errors
	Attempts  int // most refusals that one item met
	Done      int
	Repeated  int // items that were answered more than once
	Recovered time.Duration
}

// Ratio is the makespan over the fluid optimum.
func (f Figures) Ratio() float64 { return f.Makespan.Seconds() / f.Optimum.Seconds() }

// A World is one provider, a batch, and the messages between them.
type World struct {
	Batch     Batch
	Provider  Provider
	Neighbour Neighbour
	Refusal   sim.Kind      // the provider's kind of refusal
	Hop       time.Duration // on average, one way
	Stop      time.Duration // when to stop a world that does not end
	Seed      uint64
	Watch     Watch // nil: nobody
}

// A Watch sees the calls come and go. With no verdict a call leaves; with one it has arrived
// and was judged; with its end the news is here.
type Watch func(at time.Duration, c Call, v *sim.Verdict, end bool)

// A History holds the results of a world, with the moments that its optimum depends on.
type History struct {
	Figures
	Neighbours []time.Duration // accepted calls of the neighbour
	Accepted   []time.Duration // ours
	Stopped    time.Duration   // when the world ended, or was stopped
}

// world is a World in progress.
type world struct {
	World
	virtual.Time
	law      Law
	rng      *rand.Rand
	history  History
	answered []uint8
	refusals []uint32
}

// Run runs one law in one scenario.
func Run(s Scenario, law Law, seed uint64) Figures {
	h := World{
		Batch: s.Batch(), Provider: sim.NewModel(s.provider(seed), start), Neighbour: s.neighbour(),
		Refusal: sim.RateLimited, Hop: Hop, Seed: seed,
		Stop: 20*s.optimum(nil) + time.Hour, // a law that needs longer will never end
	}.Run(law)
	h.Optimum = s.optimum(h.Neighbours)
	h.Recovered = s.recovery(h.Accepted)
	return h.Figures
}

// Run runs a law in the world.
func (w World) Run(law Law) History {
	r := &world{
		World: w, Time: virtual.Begin(start), law: law, rng: rand.New(rand.NewPCG(w.Seed, 7)),
		answered: make([]uint8, w.Batch.Items), refusals: make([]uint32, w.Batch.Items),
	}
	r.meet()
	r.run()
	r.history.Stopped = r.Age()
	return r.history
}

// run lets calls leave and events happen until the law is over, or until the time to stop. The law
// is asked again after each event.
func (w *world) run() {
	for !w.law.Over() && w.Age() < w.Stop {
		calls, wake := w.law.Ready(w.Now())
		for _, c := range calls {
			c.Sent = w.Now()
			w.watch(c, nil, false)
			w.In(w.hop(), func() { w.arrive(c) })
		}
		if w.law.Over() {
			return
		}
		if !w.Pass(wake) {
			panic("lab: the law waits for nothing")
		}
		w.Do()
	}
}

func (w *world) hop() time.Duration {
	return time.Duration(float64(w.Hop) * (0.8 + 0.4*w.rng.Float64()))
}

func (w *world) watch(c Call, v *sim.Verdict, end bool) {
	if w.Watch != nil {
		w.Watch(w.Age(), c, v, end)
	}
}

// arrive lets the provider judge a call, and sends the news of its end on the way. A call that
// hangs ends with the timeout.
func (w *world) arrive(c Call) {
	v := w.Provider.Decide(w.Now(), sim.Call{Tokens: w.Batch.tokens(c.Item)})
	took := v.Latency
	if v.Hang {
		took = timeout
	}
	w.watch(c, &v, false)
	w.In(took+w.hop(), func() { w.end(c, &v) })
	if v.Kind == sim.Accepted {
		w.history.Accepted = append(w.history.Accepted, w.Age())
	}
}

// end counts the end of a call and passes it to the law. The last good answer sets the makespan.
func (w *world) end(c Call, v *sim.Verdict) {
	w.watch(c, v, true)
	f := &w.history.Figures
	switch v.Kind {
	case sim.Accepted:
		f.Makespan = w.Age()
		w.answered[c.Item]++
		if w.answered[c.Item] > 1 {
			f.Repeated++
		}
	case w.Refusal:
		f.Refused++
		w.refusals[c.Item]++
		f.Attempts = max(f.Attempts, int(w.refusals[c.Item]))
	default:
		f.Wasted++
	}
	if w.law.Ended(w.Now(), c, *v) {
		f.Done++
	}
}

// meet starts the other client of the same limit.
func (w *world) meet() {
	if w.Neighbour.PerSecond > 0 {
		w.In(w.Neighbour.gap(start, w.rng), w.neighbourCalls)
	}
}

func (w *world) neighbourCalls() {
	v := w.Provider.Decide(w.Now(), sim.Call{Tokens: w.Batch.tokens(0), Key: neighbourKey})
	if v.Kind == sim.Accepted {
		w.history.Neighbours = append(w.history.Neighbours, w.Age())
	}
	w.In(w.Neighbour.gap(w.Now(), w.rng), w.neighbourCalls)
}
