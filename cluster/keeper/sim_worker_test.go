package keeper

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A worker is a process with the core's machine in it.
type worker struct {
	l     *lab
	slot  int
	life  int
	name  string
	clock clock
	alive bool
	cut   time.Duration // the bus does not reach it before
	m     *machine.Machine
	lanes map[string]*simLane
	order []*simLane
	quiet bool // it has no work
	timer int
	at    time.Duration
	left  int // calls, in this life
	sent  int // calls in flight

	asks     map[askName]time.Time // when it sent them
	reported int                   // calls that it said have left

	served, upTime float64 // tokens, and seconds in which it had work and was reached
}

// A simLane is a job under a limit, in a worker.
type simLane struct {
	name, limit, job string
	stock            int // items that the machine has and no call is under way for
	over             bool
	served           float64 // tokens
}

const theRun machine.RunID = 1

// start is a new life.
func (w *worker) start() {
	l := w.l
	w.life++
	w.name, w.alive, w.timer, w.at, w.left, w.sent = fmt.Sprintf("w%d.%d", w.slot, w.life), true, w.timer+1, 0, 0, 0
	w.clock = l.clock(time.Hour)
	w.asks, w.reported = map[askName]time.Time{}, 0
	w.lanes, w.order, w.quiet = map[string]*simLane{}, nil, false
	config := machine.Config{Seed: l.plan.seed + uint64(1000*w.slot+w.life), Lanes: map[string]machine.LaneConfig{}}
	for _, limit := range l.plan.limits {
		for _, j := range l.plan.jobs {
			x := &simLane{name: limit + "\x1f" + j.name, limit: limit, job: j.name}
			w.lanes[x.name] = x
			w.order = append(w.order, x)
			if l.plan.lane != nil {
				config.Lanes[x.name] = l.plan.lane(l, w.name, j.name)
			} else {
				config.Lanes[x.name] = machine.LaneConfig{Maker: permit.New(w.name, j.name, limit)}
			}
		}
	}
	w.m = machine.New(config)
	w.m.Step(w.now(), machine.RunOpened(theRun, machine.RunConfig{Concurrency: l.plan.places}))
	if l.plan.works != nil && !l.plan.works(w.slot, l.Age()) {
		w.idle(true)
	}
	w.decide()
}

// die is the end of a life.
func (w *worker) die() {
	w.alive = false
	w.l.In(w.l.span(10*time.Second, 60*time.Second), func() {
		w.start()
		w.l.In(w.l.exp(w.l.plan.deaths), w.die)
	})
}

func (w *worker) now() time.Time { return w.clock.at(w.l.Age()) }

func (w *worker) reached() bool { return w.alive && w.l.Age() >= w.cut }

func (w *worker) idle(quiet bool) {
	if !w.alive || w.quiet == quiet {
		return
	}
	w.quiet = quiet
	if quiet {
		w.m.Step(w.now(), machine.Paused(theRun))
	} else {
		w.m.Step(w.now(), machine.Resumed(theRun))
	}
	w.decide()
}

// tell gives the worker's lanes a word. One of a job is for one lane, else for all of a limit.
func (w *worker) tell(limit, job string, message any) {
	if !w.reached() {
		return
	}
	for _, x := range w.order {
		if x.limit == limit && (job == "" || x.job == job) {
			w.m.Step(w.now(), machine.Delivered(x.name, message))
		}
	}
	w.decide()
}

// stocked is the number of items that a worker reads ahead for a lane.
const stocked = 96

// feed has the machine hold enough items.
func (w *worker) feed() {
	for _, x := range w.order {
		if x.stock >= stocked/2 || x.over {
			continue
		}
		items := make([]*machine.Item, 0, stocked)
		for x.stock < stocked {
			n := w.l.draw(x.job)
			guess := n
			if e := w.l.plan.estimate; e > 0 {
				guess *= e
			}
			items = append(items, &machine.Item{Pool: x.name, Cost: limiter.Cost{Requests: 1, Input: guess}, Payload: &piece{x, n}})
			x.stock++
		}
		w.m.Step(w.now(), machine.Offered(theRun, items))
	}
}

// A piece of work draws so many tokens, whatever was thought.
type piece struct {
	lane   *simLane
	tokens float64
}

// draw returns the cost of a call.
func (l *lab) draw(job string) float64 {
	n := l.plan.tokens
	if times, other := l.plan.sizes[job]; other {
		n *= times
	}
	n *= (1 + l.plan.spread*(2*l.rng.Float64()-1))
	if l.plan.heavy > 0 && l.rng.Float64() < l.plan.heavy {
		n *= 50
	}
	return n
}

func (w *worker) decide() {
	if !w.alive {
		return
	}
	w.feed()
	now := w.now()
	r := w.m.Ready(now)
	for _, t := range r.Transitions {
		if x := w.lanes[t.Lane]; t.To == machine.Stopped {
			x.over = true
		}
	}
	for _, message := range r.Words {
		w.say(message)
	}
	for _, g := range append([]machine.Grant(nil), r.Grants...) {
		x := g.Item.Payload.(*piece).lane
		x.stock--
		if g.Verdict != machine.Call {
			w.m.Step(now, machine.Settled(g, machine.Outcome{}))
			continue
		}
		w.call(x, g)
	}
	if !r.WakeAt.IsZero() {
		w.wake(w.clock.until(w.l.Age(), r.WakeAt))
	}
}

func (w *worker) say(message machine.Word) {
	words, several := message.Said.([]any)
	if !several {
		words = []any{message.Said}
	}
	for _, said := range words {
		if a, ok := said.(*permit.Ask); ok {
			w.l.book.asked(w, a)
		}
		if !w.reached() {
			continue
		}
		life := w.life
		w.l.post(func() {
			if w.l.Age() >= w.cut || w.life != life {
				w.l.center.hear(w, w.l.pass(said))
			}
		})
	}
}

func (w *worker) wake(in time.Duration) {
	if at := w.l.Age() + in; w.at > w.l.Age() && w.at <= at {
		return
	}
	w.timer++
	timer := w.timer
	w.at = w.l.Age() + in
	w.l.In(in, func() {
		if w.timer == timer {
			w.at = 0
			w.decide()
		}
	})
}

// call makes a call. Who dies meanwhile does not hear of its end; the provider serves it all
// the same.
func (w *worker) call(x *simLane, g machine.Grant) {
	l := w.l
	life, left := w.life, w.now()
	w.left++
	w.sent++
	l.sums.call(l)
	l.In(l.span(5*time.Millisecond, 50*time.Millisecond), func() {
		o := l.buckets[x.limit].serve(limiter.Cost{Requests: 1, Input: g.Item.Payload.(*piece).tokens}, w, x)
		took := l.span(5*time.Millisecond, 50*time.Millisecond)
		if o.Signal == machine.Succeeded {
			took += time.Duration(float64(l.plan.latency) * (0.8 + 0.4*l.rng.Float64()))
		}
		l.In(took, func() {
			if w.life != life || !w.alive {
				return
			}
			w.sent--
			o.Latency = w.now().Sub(left)
			if o.Signal == machine.Succeeded {
				w.m.Step(w.now(), machine.Settled(g, o))
			} else {
				x.stock++
				w.m.Step(w.now(), machine.HandedOver(g, o))
			}
			w.decide()
		})
	})
}
