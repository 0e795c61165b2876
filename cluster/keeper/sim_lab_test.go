package keeper

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A lab is an organisation in virtual time: workers with the core's machine in each, a
// provider whose bucket they share, a bus that loses, doubles and delays, a keeper, and those
// that do without one.
//
//	worker ─call─▶ provider     a way of 5–50 ms, an answer after 2 s, a refusal at once
//	worker ─ask──▶ keeper       a way of 0.5–25 ms, each word by itself: they overtake each other
//	keeper ─give─▶ worker
type lab struct {
	virtual.Time
	plan    plan
	rng     *rand.Rand
	buckets map[string]*bucket // the provider's, by limit
	center  center
	workers []*worker
	book    book
	sums    sums
}

// A center gives permits.
type center interface {
	begin()
	// hear takes a word of a worker's that has arrived.
	hear(from *worker, message any)
}

// base is the beginning, by clocks that are right.
var base = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newLab(p plan) *lab {
	l := &lab{plan: p, rng: rand.New(rand.NewPCG(p.seed, 0x6c6162))}
	l.book = book{l: l, given: map[permitName]*bookPermit{}}
	l.buckets = map[string]*bucket{}
	if p.deaths == 0 {
		l.plan.deaths = 5 * time.Minute
	}
	if p.kills == 0 {
		l.plan.kills = time.Minute
	}
	if len(l.plan.jobs) == 0 {
		l.plan.jobs = []simJob{{"job", 1}}
	}
	if len(l.plan.limits) == 0 {
		l.plan.limits = []string{"org"}
	}
	for _, name := range l.plan.limits {
		l.buckets[name] = &bucket{l: l, level: p.rate * p.depth}
	}
	if p.rival == nil {
		l.center = &office{l: l}
	} else {
		l.center = p.rival(l)
	}
	for slot := range p.workers {
		w := &worker{l: l, slot: slot}
		l.workers = append(l.workers, w)
		l.In(l.span(0, 2*time.Second), w.start)
	}
	l.center.begin()
	if p.storm {
		l.storms()
	}
	if p.works != nil {
		l.every(100*time.Millisecond, func() {
			for _, w := range l.workers {
				w.idle(!p.works(w.slot, l.Age()))
			}
		})
	}
	l.every(10*time.Millisecond, func() { l.sums.tick(l) })
	return l
}

// run lets the plan happen.
func (l *lab) run() result {
	for l.Pass(time.Time{}) && l.Age() <= l.plan.length {
		l.Do()
	}
	return l.sums.result(l)
}

func (l *lab) every(d time.Duration, do func()) {
	l.In(d, func() { do(); l.every(d, do) })
}

// span is a moment between two.
func (l *lab) span(from, to time.Duration) time.Duration {
	return from + time.Duration(l.rng.Float64()*float64(to-from))
}

// post carries a word over the bus.
func (l *lab) post(deliver func()) {
	times := 1
	switch x := l.rng.Float64(); {
	case x < l.plan.loss:
		times = 0
	case x < 2*l.plan.loss:
		times = 2
	}
	l.sums.words++
	for range times {
		way := l.span(500*time.Microsecond, 25*time.Millisecond)
		if l.plan.slow > 0 {
			way = time.Duration(float64(way) * l.plan.slow)
		}
		l.In(way, deliver)
	}
}

// storms kill and cut off workers. The office has its own.
func (l *lab) storms() {
	for _, w := range l.workers {
		l.In(l.exp(l.plan.deaths), w.die)
	}
	l.every(l.plan.kills*3/4, func() {
		for _, w := range l.workers {
			if l.rng.Float64() < 0.2 {
				w.cut = max(w.cut, l.Age()+l.span(5*time.Second, 20*time.Second))
			}
		}
	})
}

func (l *lab) exp(mean time.Duration) time.Duration {
	return time.Duration(l.rng.ExpFloat64() * float64(mean))
}

// A clock is somebody's: it is wrong by an offset, and goes wrong by up to 500 ppm.
type clock struct {
	offset time.Duration
	ppm    float64
}

func (l *lab) clock(offset time.Duration) clock {
	return clock{offset: l.span(-offset, offset), ppm: (2*l.rng.Float64() - 1) * 500}
}

func (c clock) at(now time.Duration) time.Time {
	return base.Add(c.offset + now + time.Duration(float64(now)*c.ppm/1e6))
}

// until returns the time until a clock shows t.
func (c clock) until(now time.Duration, t time.Time) time.Duration {
	return max(0, time.Duration(float64(t.Sub(c.at(now)))/(1+c.ppm/1e6))+time.Nanosecond)
}

// pass is a word as it arrives.
func (l *lab) pass(message any) any {
	if l.plan.json == nil {
		return message
	}
	return l.plan.json(message)
}

func (l *lab) deliver(g *permit.Give) {
	if w := l.named(g.Worker); w != nil {
		w.tell(g.Limit, g.Job, g)
	}
}

// named is the worker of that name; nil if that life is over.
func (l *lab) named(name string) *worker {
	var slot, life int
	if n, err := fmt.Sscanf(name, "w%d.%d", &slot, &life); n != 2 || err != nil || l.workers[slot].life != life {
		return nil
	}
	return l.workers[slot]
}

// An office is where the keeper is: it dies, and another takes its place after a while.
type office struct {
	l     *lab
	desks []*activeKeeper
	epoch uint64
	saved map[string]machine.LaneMemory
	stops map[string]*permit.Cause
	gone  Counts // of those that are dead
}

// A desk is one keeper at work.
type activeKeeper struct {
	o     *office
	k     *Keeper
	clock clock
	alive bool
	timer int
	at    time.Duration // the timer's
	half  int           // of two keepers in a split: which workers it hears; -1: all
}

func (o *office) begin() {
	o.open(-1)
	o.l.every(500*time.Millisecond, func() {
		for _, d := range o.desks {
			if d.alive {
				o.saved, o.stops = d.save(), d.k.Stops()
			}
		}
	})
	if o.l.plan.storm {
		o.l.every(o.l.plan.kills, o.kill)
	}
	if s := o.l.plan.split; s[1] > 0 {
		o.l.In(s[0], func() {
			o.desks[0].half = 0
			o.open(1)
		})
		o.l.In(s[1], func() {
			o.desks[0].alive = false
			o.desks = o.desks[1:]
			o.desks[0].half = -1
		})
	}
}

func (d *activeKeeper) save() map[string]machine.LaneMemory {
	now := d.clock.at(d.o.l.Age())
	if d.o.l.plan.hand != nil {
		return d.o.l.plan.hand(d.k, now)
	}
	return d.k.Save(now)
}

// open has a keeper begin.
func (o *office) open(half int) {
	o.epoch++
	d := &activeKeeper{o: o, alive: true, clock: o.l.clock(50 * time.Millisecond), half: half}
	d.k = New(o.config(o.epoch))
	for _, j := range o.l.plan.jobs {
		d.k.Job(d.clock.at(o.l.Age()), j.name, j.weight)
	}
	o.desks = append(o.desks, d)
}

func (o *office) config(epoch uint64) Config {
	c := Config{Epoch: epoch, Seed: o.l.plan.seed + epoch, Memory: o.saved, Stops: o.stops, Limits: map[string]machine.LaneConfig{}}
	for _, name := range o.l.plan.limits {
		c.Limits[name] = o.l.plan.known()
	}
	return c
}

// kill ends the keeper. With T = 3 s another one has won the lease after T·1.01, and ways,
// less what had passed since the dead one's last renewal.
func (o *office) kill() {
	d := o.desks[0]
	if !d.alive {
		return
	}
	d.alive = false
	o.gone = o.gone.plus(d.k.totals())
	o.desks = nil
	o.l.In(3030*time.Millisecond+o.l.span(1, 50*time.Millisecond)-o.l.span(0, 750*time.Millisecond), func() { o.open(-1) })
}

// totals are of all keepers that there were.
func (o *office) totals() Counts {
	c := o.gone
	for _, d := range o.desks {
		c = c.plus(d.k.totals())
	}
	return c
}

func (k *Keeper) totals() (c Counts) {
	for _, l := range k.order {
		c = c.plus(l.counts)
	}
	return c
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Given + d.Given, c.Ended + d.Ended, c.Refused + d.Refused, c.Unused + d.Unused, c.Vanished + d.Vanished}
}

func (o *office) hear(from *worker, message any) {
	for _, d := range o.desks {
		if d.alive && (d.half < 0 || d.half == from.slot%2) {
			d.hear(message.(*permit.Ask))
		}
	}
}

func (d *activeKeeper) hear(a *permit.Ask) {
	if d.o.l.plan.taped != nil {
		d.o.l.plan.taped(d, a)
	}
	if err := d.k.Heard(d.clock.at(d.o.l.Age()), *a); err != nil {
		d.o.l.book.fail("an ask was not heard: %v", err)
	}
	d.decide()
}

func (d *activeKeeper) decide() {
	if !d.alive {
		return
	}
	l := d.o.l
	if l.plan.taped != nil {
		l.plan.taped(d, nil)
	}
	out := d.k.Ready(d.clock.at(l.Age()))
	for _, g := range out.Gives {
		l.book.gave(&g)
		l.post(func() { l.deliver(l.pass(&g).(*permit.Give)) })
	}
	for _, c := range out.Cools {
		for _, w := range l.workers {
			if d.half < 0 || d.half == w.slot%2 {
				l.post(func() { w.tell(c.Limit, "", l.pass(&c)) })
			}
		}
	}
	if l.plan.watched != nil {
		l.plan.watched(d)
	}
	if !out.WakeAt.IsZero() {
		d.wake(d.clock.until(l.Age(), out.WakeAt))
	}
}

// wake sets the timer, unless it rings earlier already.
func (d *activeKeeper) wake(in time.Duration) {
	l := d.o.l
	if at := l.Age() + in; d.at > l.Age() && d.at <= at {
		return
	}
	d.timer++
	timer := d.timer
	d.at = l.Age() + in
	l.In(in, func() {
		if d.timer == timer {
			d.at = 0
			d.decide()
		}
	})
}

// A bucket of tokens that refuses what it does not hold, and does not charge for that.
type bucket struct {
	l     *lab
	level float64
	at    time.Duration
	full  bool // it was, since somebody looked
}

func (b *bucket) rate() float64 {
	if f := b.l.plan.limit; f != nil {
		return b.l.plan.rate * f(b.l.Age())
	}
	return b.l.plan.rate
}

func (b *bucket) refill() {
	b.level += b.rate() * (b.l.Age() - b.at).Seconds()
	b.at = b.l.Age()
	if most := b.rate() * b.l.plan.depth; b.level >= most {
		b.level, b.full = most, true
	}
}

// serve judges a call that arrives.
func (b *bucket) serve(c limiter.Cost, w *worker, x *simLane) (o machine.Outcome) {
	b.refill()
	l := b.l
	if q := l.plan.quota; q > 0 && l.Age() >= q {
		l.sums.refusal(l)
		return machine.Outcome{Signal: machine.Exhausted, Cause: errQuota}
	}
	l.sums.arrived += c.Tokens()
	o.Signal = machine.Throttled
	if b.level >= c.Tokens() {
		b.level -= c.Tokens()
		o = machine.Outcome{Signal: machine.Succeeded, Measured: true, Actual: c}
		l.sums.serve(l, w, x, c.Tokens())
	} else {
		l.sums.refusal(l)
		if l.sums.onRefusal != nil {
			l.sums.onRefusal(c.Tokens())
		}
	}
	if l.plan.headers {
		o.Sightings = []limiter.Sighting{{
			Dimension: limiter.Tokens, Limit: 60 * b.rate(), Window: time.Minute, Remaining: math.Floor(b.level),
			Reset: time.Duration((b.rate()*l.plan.depth - b.level) / b.rate() * 1e9), HasReset: true,
		}}
	}
	return o
}

var errQuota = errors.Join(&provider.Error{Kind: provider.QuotaExhausted, Status: 429, Code: "insufficient_quota", Message: "you have used all of your credit"})

// A plan is what a lab is like.
type plan struct {
	name       string
	seed       uint64
	length     time.Duration
	from       time.Duration // what is measured begins then
	workers    int
	places     int
	rate       float64 // tokens that flow in per second
	depth      float64 // seconds of it that the bucket holds
	headers    bool
	configured bool // the user tells the limit
	latency    time.Duration
	tokens     float64       // of a call, on average
	spread     float64       // they differ by so much, up and down
	heavy      float64       // share of calls that draw fifty times as much
	storm      bool          // keepers and workers die, and a fifth of them is cut off at times
	deaths     time.Duration // mean life of a worker in a storm; 0: five minutes
	kills      time.Duration // life of a keeper in a storm; 0: a minute
	loss       float64       // share of words that are lost, and as many are doubled
	slow       float64       // times the usual way to the bus; 0: once

	limit    func(at time.Duration) float64                         // times the rate; nil: it does not change
	knows    *machine.LaneConfig                                    // what the user says of the limit; nil: what told says
	quota    time.Duration                                          // when the provider serves no more; 0: never
	works    func(slot int, at time.Duration) bool                  // whether a worker has work; nil: always
	jobs     []simJob                                               // nil: one
	sizes    map[string]float64                                     // times the tokens of a job's calls; nil: once
	estimate float64                                                // times the truth; 0: once
	json     func(any) any                                          // what a word becomes on the bus; nil: it stays
	limits   []string                                               // nil: one
	split    [2]time.Duration                                       // two keepers from then until then
	rival    func(*lab) center                                      // who is asked; nil: a keeper
	lane     func(l *lab, worker, job string) machine.LaneConfig    // of a worker; nil: one that is led by permits
	hand     func(*Keeper, time.Time) map[string]machine.LaneMemory // what the next keeper knows; nil: all
	watched  func(*activeKeeper)                                    // after each decision of a keeper
	taped    func(*activeKeeper, *permit.Ask)                       // what a keeper hears, and nil when it decides
}

type simJob struct {
	name   string
	weight float64
}

// known returns what the user says of a limit.
func (p *plan) known() (c machine.LaneConfig) {
	if p.knows != nil {
		return *p.knows
	}
	if p.configured {
		c.Limits.TPM = 60 * p.rate
	}
	return c
}
