package machine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
)

// Bounds of a world. One that reaches them hangs or spins, which is a failure.
const (
	simMaxSteps = 10_000_000          // a leader speaks ten times a second, for as long as a world may last
	simMaxTime  = 10 * 24 * time.Hour // a lane at its floor lets a call go each eight minutes, for hundreds of items
)

// A world is everything around one machine in virtual time: clients that offer,
// workers that call, servers that answer, people that meddle; and a book of its
// own on what should be true.
//
//	plan ─▶ happenings ─▶ Step ─▶ book: may that change anything?
//	                      Ready ─▶ book: may these be granted? ─▶ calls ─▶ happenings
type world struct {
	virtual.Time
	plan    *plan
	rng     *rand.Rand
	m       *Machine
	now     time.Time // by the machine's clock
	wake    time.Time
	steps   int
	servers map[string]*server
	book    *book
	heard   int                  // transitions since the last look
	log     func(string, ...any) // nil: nobody reads
	bare    bool                 // the world asks the machine nothing that it need not
	looks   looks                // when the book looks at the whole machine: after steps,
	glances looks                // and after decisions
	look    bool                 // it will after the next decision
	watcher *watcher             // who looks at it all the time; nil: nobody does
	telling eventKind            // the fact that the machine takes, or took last
	outer   *simOutside
	hasty   *rand.Rand // of those who withdraw before they offer
}

// A fault is what a world panics with when the machine breaks a promise.
type fault string

func (w *world) failf(format string, args ...any) { panic(fault(fmt.Sprintf(format, args...))) }

func newWorld(p *plan, log func(string, ...any)) *world {
	w := &world{
		Time: virtual.Begin(storyStart), plan: p, rng: rand.New(rand.NewPCG(p.seed, 2)), m: New(p.machine), now: storyStart,
		hasty: rand.New(rand.NewPCG(p.seed, 5)), servers: map[string]*server{}, log: log, looks: newLooks(p, 35), glances: newLooks(p, 36),
	}
	w.book, w.look = newBook(w), w.glances.now()
	for i := range p.lanes {
		l := &p.lanes[i]
		w.servers[l.name] = &l.server
		if l.defined {
			w.tell(LaneDefined(l.name, l.config))
			w.book.define(l.name, l.config)
		}
	}
	for i := range p.runs {
		w.begin(RunID(i+1), &p.runs[i])
	}
	w.meddle()
	w.steer()
	w.newOutside()
	return w
}

func (w *world) say(format string, args ...any) {
	if w.log != nil {
		w.log("%9.3fs  %s", w.now.Sub(storyStart).Seconds(), fmt.Sprintf(format, args...))
	}
}

// begin opens a run, and plans what it will offer.
func (w *world) begin(id RunID, r *runPlan) {
	w.book.open(id, r.config)
	w.tell(RunOpened(id, r.config))
	var after time.Duration
	for seq := 0; seq < r.items; {
		n := min(r.items-seq, 1+w.rng.IntN(20))
		items := make([]*Item, n)
		for i := range items {
			items[i] = &Item{Seq: uint64(seq + i), Pool: r.names[w.rng.IntN(len(r.names))], Cost: w.cost()}
			w.withdrawEarly(items[i], after)
		}
		w.In(after, func() { w.book.offer(id, items); w.tell(Offered(id, items)) })
		seq += n
		after += time.Duration(w.rng.Float64() * float64(5*time.Second))
		if w.rng.IntN(10) == 0 {
			after += time.Duration(w.rng.IntN(100)) * time.Second // long enough for lanes to be forgotten
		}
	}
	w.In(after, func() { w.book.runs[id].ended = true; w.tell(InputEnded(id)) })
}

func (w *world) cost() limiter.Cost {
	c := limiter.Cost{Requests: 1}
	if w.plan.without&estimates == 0 && w.rng.IntN(2) == 0 {
		c.Input, c.Output = float64(w.rng.IntN(2000)), float64(w.rng.IntN(1000))
		if w.rng.IntN(30) == 0 {
			c.Input *= 10
		}
	}
	return c
}

// tell tells the machine a fact, and sees that it made of it what it may.
func (w *world) tell(e Event) {
	if w.log != nil { // else each fact would be copied to the heap
		w.say("%v", e)
	}
	w.book.breakSilences(e) // before it as well: it may bring who draws on a lane again
	look := w.looks.now()
	before := w.book.before(e, look)
	w.book.isAboutToEnd(e)
	w.telling = e.kind
	w.m.Step(w.now, e)
	w.hear(w.m.out.Transitions)
	w.book.after(e, before)
	if look && !w.bare {
		w.m.check(w.book)
	}
}

// hear writes down the transitions that were not heard of yet.
func (w *world) hear(all []Transition) {
	for _, t := range all[w.heard:] {
		if w.log != nil {
			w.say("%v", t)
		}
		w.book.transition(t)
	}
	w.heard = len(all)
}

// run lets the world happen until it is over.
func (w *world) run() {
	for w.ready(); !w.book.over(); w.ready() {
		if w.steps++; w.steps > simMaxSteps {
			w.failf("the machine spins")
		}
		w.pass()
		if w.Age() > simMaxTime {
			w.failf("the world does not end")
		}
		for w.Do() {
			if !w.Due() || w.rng.IntN(3) == 0 { // the machine looks between two things that happen at one moment
				break
			}
		}
	}
	w.book.close()
}

// pass moves time to what happens next.
func (w *world) pass() {
	if !w.Pass(w.wake) {
		w.failf("nothing will ever happen again, and the runs are not over")
	}
	w.watcher.watch(w.m, w.now, w.Now())
	w.now = w.Now()
}

// ready asks what follows, and carries it out.
func (w *world) ready() {
	ready := w.m.Ready(w.now)
	w.wake = ready.WakeAt
	w.hear(ready.Transitions)
	w.book.findDecided(false)
	w.heard = 0
	for i, g := range ready.Grants {
		w.book.later = ready.Grants[i+1:]
		if w.log != nil {
			w.say("run %d, %v", g.Run, g)
		}
		w.book.grant(g)
		w.work(g)
	}
	w.checkMessages(ready.Words)
	for _, lw := range ready.LongWaits {
		if !w.bare {
			w.say("%v", lw)
		}
		w.book.longWait(lw)
	}
	for _, s := range ready.Stranded {
		w.say("run %d is stranded", s.Run)
		w.book.strand(s)
	}
	for _, f := range ready.Finished {
		w.say("run %d is over", f.Run)
		w.book.finish(f)
	}
	w.book.afterReady(ready, w.look)
	w.book.findDecided(true)
	if w.look && !w.bare {
		w.m.check(w.book)
	}
	if !w.bare {
		w.m.checkAwake(w.book, w.look)
		w.book.noneStarves(ready.Grants)
		w.book.isSaid()
	}
	w.look = w.glances.now()
	if w.steps%16 == 0 {
		if again := w.m.Ready(w.now); len(again.Grants)+len(again.Transitions) > 0 {
			w.failf("a second look finds what the first did not: %v %v", again.Grants, again.Transitions)
		}
	}
}

// work is a worker: it calls, and says how the call ended.
func (w *world) work(g Grant) {
	if g.Verdict != Call {
		w.In(time.Duration(w.rng.IntN(10))*time.Millisecond, func() { w.end(g, Outcome{}, w.rng.IntN(5) > 0) })
		return
	}
	s := w.servers[g.Lane]
	a := w.spoil(g, s.call(w.rng, w.now, w.now.Sub(storyStart), g.Item.Cost))
	s.flying++
	a.outcome.Account = a.outcome.Signal == Exhausted && w.plan.without&accounts == 0 && g.Item.Seq%3 > 0
	if w.plan.without&cancels == 0 && w.rng.IntN(20) == 0 {
		a = answer{Outcome{}, time.Duration(w.rng.Float64() * float64(a.latency))}
	}
	if w.plan.without&unsents == 0 && w.rng.IntN(30) == 0 {
		a = answer{Outcome{Signal: []Signal{Nothing, Failed}[w.rng.IntN(2)], Unsent: true}, time.Millisecond}
	}
	if w.plan.without&estimates == 0 && a.outcome.Signal == Succeeded && w.rng.IntN(2) == 0 {
		a.outcome.Measured = true
		a.outcome.Actual = limiter.Cost{Requests: 1, Input: float64(w.rng.IntN(2500)), Output: float64(w.rng.IntN(1500))}
		a.outcome.Cached = w.cached(a.outcome.Actual.Input)
	}
	w.In(a.latency, func() {
		s.flying--
		w.bills(g, &a.outcome)
		a.outcome.Last = a.outcome.Signal == Failed && g.Item.Attempts+1 >= simAttempts
		w.end(g, a.outcome, w.decides(g, a.outcome))
	})
}

// decides whether the end of the call is the end of the item.
func (w *world) decides(g Grant, o Outcome) bool {
	switch o.Signal {
	case Throttled, Overloaded:
		return g.Item.Throttled >= 30
	case Failed:
		return o.Unsent && g.Item.Throttled >= 30
	case Exhausted:
		return o.Alike == 0 && w.rng.IntN(2) == 0
	case Nothing:
		return w.rng.IntN(4) > 0
	case Answered:
		return o.Alike == 0 && w.rng.IntN(10) > 0
	}
	return true
}

func (w *world) end(g Grant, o Outcome, settles bool) {
	e := HandedOver(g, o)
	if settles {
		e = Settled(g, o)
	}
	w.tell(e)
	if w.plan.without&duplicates != 0 || w.rng.IntN(10) > 0 {
		return
	}
	if w.rng.IntN(2) == 0 {
		w.tell(e) // before the machine has looked
		return
	}
	w.In(time.Duration(w.rng.IntN(2000))*time.Millisecond, func() { w.tell(e) })
}
