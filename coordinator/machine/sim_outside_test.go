package machine

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Remote lanes, who leads them, and the ends of calls that another
// machine let go.
//
//	law ─Say─▶ want ─(late, or lost)─▶ leader ─(late, or lost)─▶ Delivered: permits, a stop, …

// A simMaker makes the laws of one lane, which all write to one page.
type simMaker struct{ page *remotePage }

func (m *simMaker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	if m.page.broken { // the new law knows nothing of what the other was asked
		m.page.renewed, m.page.broken, m.page.noticed, m.page.asked = true, false, false, 0
	}
	return &simRemote{page: m.page, out: map[uint64]bool{}}
}

// A remotePage is what the world knows of a remote lane.
type remotePage struct {
	lane   string
	world  *world
	number uint64    // of the latest call that its laws have let go
	ended  []Outcome // told since the world has looked
	wrong  string    // what a law found that cannot be
	asked  int       // how often it was asked what it has to say,
	seen   int       // and when the world looked last
	up     limiter.Upcoming
	costs  []limiter.Cost

	breaks  int  // how many messages its laws take until one panics; 0: none does
	broken  bool // its law has panicked,
	noticed bool // the world has looked since,
	renewed bool // and it has another one since
}

// mayBreak panics when its time has come.
func (p *remotePage) mayBreak() {
	if p.breaks == 0 {
		return
	}
	if p.breaks--; p.breaks == 0 {
		p.broken = true
		panic(errSimLaw)
	}
}

// isRenewed reports, once, whether the lane has another law in place of one that panicked.
func (p *remotePage) isRenewed() (renewed bool) {
	renewed, p.renewed = p.renewed, false
	return renewed
}

// A simRemote is the law of a remote lane: permits last for a while, one after the other.
type simRemote struct {
	limiter.Unlimited
	page    *remotePage
	permits []time.Time // until when each is good
	rests   time.Time   // nothing leaves before
	out     map[uint64]bool
	next    time.Time
}

// What a leader says.
type (
	simGive struct {
		permits int
		good    time.Duration
	}
	simRest struct{ until time.Time }
	simWant struct{ waiting int }
)

var (
	errSimStopped = errors.New("sim: stopped from outside")
	errSimLaw     = errors.New("sim: a law panics")
)

// Tick drops the permits that are good no more: asking changes nothing.
func (l *simRemote) Tick(now time.Time, _ bool) {
	l.permits = slices.DeleteFunc(l.permits, func(until time.Time) bool { return !until.After(now) })
}

func (l *simRemote) Wait(now time.Time, _ limiter.Cost) (time.Duration, limiter.Bound) {
	if l.rests.After(now) {
		return l.rests.Sub(now), limiter.BoundCooldown
	}
	for _, until := range l.permits {
		if until.After(now) {
			return 0, limiter.BoundNone
		}
	}
	return limiter.UntilNotified, limiter.BoundRequests
}

func (l *simRemote) Sent(now time.Time, _ limiter.Cost, _ int) limiter.Ticket {
	l.page.mayBreak()
	l.Tick(now, false)
	if len(l.permits) == 0 || l.rests.After(now) {
		l.page.wrong = "a call leaves without a permit"
		return limiter.Ticket{}
	}
	l.permits = l.permits[1:]
	l.page.number++
	l.out[l.page.number] = true
	return limiter.Ticket{Number: l.page.number, Probe: l.page.number%8 == 0}
}

func (l *simRemote) Ended(_ time.Time, k limiter.Ticket, o Outcome) {
	l.page.mayBreak()
	if !l.out[k.Number] {
		l.page.wrong = "a call ends that this law did not let go, or twice"
	}
	delete(l.out, k.Number)
	l.page.ended = append(l.page.ended, o)
}

func (l *simRemote) Hear(now time.Time, message any) (r limiter.Reply) {
	l.page.mayBreak()
	l.Tick(now, false)
	switch w := message.(type) {
	case simGive:
		for range w.permits {
			l.permits = append(l.permits, now.Add(w.good))
		}
	case simRest:
		l.rests, l.permits = w.until, nil
	case limiter.Reply:
		return w
	}
	return r
}

func (l *simRemote) Say(now time.Time, up limiter.Upcoming) (message any, next time.Time) {
	l.page.mayBreak()
	l.page.costs = l.page.costs[:0]
	l.page.asked++
	if l.page.world.look { // else nobody compares them
		up.Costs(func(c limiter.Cost) bool { l.page.costs = append(l.page.costs, c); return true })
	}
	up.Costs = nil
	l.page.up = up
	switch {
	case up.Waiting == 0:
		return nil, time.Time{}
	case now.Before(l.next):
		return nil, l.next
	}
	l.next = now.Add(permitAsks)
	return simWant{up.Waiting}, l.next
}

// What such a law is not told.
func (l *simRemote) Answered(time.Time, limiter.News) { l.page.wrong = "answered" }
func (l *simRemote) Failed(time.Time, limiter.News)   { l.page.wrong = "failed" }
func (l *simRemote) Vanished(time.Time, limiter.News) { l.page.wrong = "vanished" }
func (l *simRemote) Broken(time.Time)                 { l.page.wrong = "broken" }
func (l *simRemote) Refused(time.Time, limiter.News) (r limiter.Refusal) {
	l.page.wrong = "refused"
	return r
}

func (l *simRemote) Straggled(time.Time, limiter.News) (until time.Time) {
	l.page.wrong = "straggled"
	return until
}

// fromOutside draws from a stream of its own, so that worlds that are known by their seed
// stay what they were but for remote lanes.
func (p *plan) fromOutside() {
	rng := rand.New(rand.NewPCG(p.seed, 8))
	for i := range p.lanes {
		l := &p.lanes[i]
		remote, defined := rng.IntN(6) == 0, rng.IntN(4) > 0
		if !remote || p.without&leaders != 0 {
			continue
		}
		l.page = &remotePage{lane: l.name}
		if breaks := rand.New(rand.NewPCG(p.seed, 12)); breaks.IntN(4) == 0 && p.without&faults == 0 {
			l.page.breaks = 1 + breaks.IntN(400)
		}
		if defined { // else it becomes one that is, when a person says so
			l.defined, l.config.Maker = true, &simMaker{l.page}
		}
	}
}

// simOutside leads lanes, and reports the calls of another machine.
type simOutside struct {
	rng   *rand.Rand
	pages map[string]*remotePage
}

func (w *world) newOutside() {
	w.outer = &simOutside{rng: rand.New(rand.NewPCG(w.plan.seed, 9)), pages: map[string]*remotePage{}}
	for i := range w.plan.lanes {
		if l := &w.plan.lanes[i]; l.page != nil {
			l.page.world, w.outer.pages[l.name] = w, l.page
			w.planLeader(l.name)
		}
	}
	rng := w.outer.rng
	if rng.IntN(3) > 0 || w.plan.without&overhearings != 0 {
		return
	}
	for range 1 + rng.IntN(20) {
		w.In(time.Duration(rng.Int64N(int64(40*time.Second))), w.overhear)
	}
}

// planLeader plans what the leader of a lane does of itself.
func (w *world) planLeader(lane string) {
	rng := w.outer.rng
	at := func() time.Duration { return time.Duration(rng.Int64N(int64(40 * time.Second))) }
	switch rng.IntN(3) {
	case 0:
		w.In(at(), func() {
			w.tell(Delivered(lane, simRest{w.now.Add(time.Duration(rng.IntN(10_000)) * time.Millisecond)}))
		})
	case 1:
		w.In(at(), func() { w.tell(Delivered(lane, limiter.Reply{Answered: !w.servers[lane].nobody})) })
	}
	if rng.IntN(3) == 0 {
		w.In(at(), func() { w.tell(Delivered(lane, limiter.Reply{Stop: errSimStopped})) })
		w.In(at(), func() { w.tell(Delivered(lane, limiter.Reply{Resume: true})) })
	}
	w.In(at(), func() { w.toggle(lane) })
}

// toggle makes a lane remote that was not, or the other way round.
func (w *world) toggle(lane string) {
	if w.outer.rng.IntN(2) == 0 {
		return
	}
	if w.m.lanes[lane] != nil {
		w.book.lane(lane) // its law began by what it is defined as now
	}
	c := *w.m.laneConfig(lane)
	if c.Maker == nil {
		c.Maker = &simMaker{w.outer.pages[lane]}
	} else {
		c.Maker = nil
	}
	w.tell(LaneDefined(lane, c))
	w.book.define(lane, c)
}

// checkMessages hands on what laws say: late, lost at times, and answered so.
func (w *world) checkMessages(all []Word) {
	rng := w.outer.rng
	for _, message := range all {
		want := message.Said.(simWant)
		if w.m.lanes[message.Lane] == nil || rng.IntN(10) == 0 {
			continue
		}
		give := simGive{1 + rng.IntN(1+min(want.waiting, 20)), time.Duration(rng.IntN(2000)) * time.Millisecond}
		w.In(time.Duration(rng.IntN(300))*time.Millisecond, func() {
			w.steps-- // a remote lane asks ten times a second for hours, where each call takes a minute and fails
			if rng.IntN(10) > 0 {
				w.tell(Delivered(message.Lane, give))
			}
		})
	}
}

// overhear tells how a call ended that another machine let go on some lane.
func (w *world) overhear() {
	rng, p := w.outer.rng, &w.plan.lanes[w.outer.rng.IntN(len(w.plan.lanes))]
	o := Outcome{
		Signal:  []Signal{Nothing, Succeeded, Succeeded, Succeeded, Answered, Throttled, Overloaded, Failed, Exhausted}[rng.IntN(9)],
		Latency: time.Duration(rng.IntN(30_000)) * time.Millisecond, First: 1, Later: 5, Alike: uint32(rng.IntN(2)), Cause: errSimExhausted,
		Directed: rng.IntN(2) == 0, RetryAfter: time.Duration(rng.IntN(20_000)) * time.Millisecond,
		Unclear: rng.IntN(4) == 0, Timeout: rng.IntN(4) == 0, Unsent: rng.IntN(8) == 0, Way: byError,
		Measured: rng.IntN(2) == 0, Actual: limiter.Cost{Requests: 1, Input: float64(rng.IntN(2500))},
	}
	if p.server.nobody { // else nothing would end that the machine waits for
		o.Signal = Failed
	}
	if p.server.day == 0 { // else the day would be used up twice
		o.Sightings = p.server.sightings()
	}
	w.tell(Overheard(p.name, w.now.Add(-o.Latency), limiter.Cost{Requests: 1, Input: float64(rng.IntN(2000))}, o))
}

// isRemote reports whether a lane of the machine is remote, by its config.
func (l *bookLane) isRemote() bool { return l.config.Maker != nil }

// rests reports whether a remote lane cools outside.
func (b *book) rests(lane string) bool {
	law, is := b.w.m.lanes[lane].ownLaw().(*simRemote)
	return is && law.rests.After(b.w.m.now)
}

// heardOf writes down what an overheard end says of a lane.
func (b *book) heardOf(e Event) {
	if b.w.m.lanes[e.name] == nil {
		return // there was no room for it
	}
	l, o := b.lane(e.name), e.outcome
	if l.isRemote() {
		return
	}
	l.slowed = l.slowed || o.Signal == Failed
	answered, said := o.Signal == Succeeded || o.Signal == Answered, o.Signal == Exhausted && o.Alike != 0
	if answered || said {
		l.answers++
	}
	if answered {
		l.answeredBy(e.config.(departure).sent, o)
	}
	if answered || said || o.Signal == Throttled || o.Signal == Overloaded {
		l.silence.heard = true
	}
	if (answered || o.Signal == Failed) && (l.phase == Flowing || l.phase == Ramping) {
		l.letIn = b.w.now
	}
}

// heardFrom writes down what a word does to a lane.
func (b *book) heardFrom(e Event, before moment) {
	r, is := e.config.(limiter.Reply)
	if !is || b.w.m.lanes[e.name] == nil {
		return
	}
	l := b.lane(e.name)
	if !l.isRemote() || b.w.outer.pages[e.name].broken {
		return
	}
	if r.Answered {
		l.answers, l.blame.ever, l.silence.heard = max(1, l.answers), true, true
	}
	if is := b.w.m.lanes[e.name]; r.Resume && is.epoch > before.on(is)[0] { // it had stopped
		l.letIn = b.w.now
	}
}

// checkEnds: a law that leads a lane hears the end of each call that it let go, in the words of
// the caller, and of no other call.
func (b *book) checkEnds(e Event, remote, late bool) {
	for lane, page := range b.w.outer.pages {
		if page.wrong != "" {
			b.w.failf("lane %s: its law: %s", lane, page.wrong)
		}
		if page.broken {
			continue
		}
		want := 0
		if e.kind == evSettled || e.kind == evHandedOver {
			if x := b.of[e.item]; x.grant.Lane == lane && remote && !late {
				want = 1
			}
		}
		if len(page.ended) != want {
			b.w.failf("%v: the law of lane %s is told of %d ends", e, lane, len(page.ended))
		}
		if want == 1 {
			b.checkWholeEnd(e, lane, page.ended[0])
		}
		page.ended = nil
	}
}

// checkWholeEnd: a law that leads hears the caller's whole outcome, and whether the item has
// failed before.
func (b *book) checkWholeEnd(e Event, lane string, reported Outcome) {
	x, again := b.of[e.item], reported.Again
	if reported.Again = false; !reflect.DeepEqual(reported, e.outcome) {
		b.w.failf("%v: the law of lane %s is told %+v", e, lane, reported)
	}
	if again && !x.blame.failed || !again && x.blame.failedRemote {
		b.w.failf("%v: the law of lane %s is told of a failure before: %v", e, lane, again)
	}
}

// checkRemote: a remote lane flows, or has stopped, and its law knows what is to come.
func (m *Machine) checkRemote(b *book, l *lane) {
	if l.phase != Flowing && l.phase != Stopped || l.breaker.State(m.now) != limiter.Closed && l.phase == Flowing {
		b.w.failf("lane %s is led, and %v", l.name, l.phase)
	}
}
