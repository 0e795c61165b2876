package keeper

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/cluster/permit"
)

// A lab is an organisation in virtual time: workers with the core's machine in each, a
// provider whose bucket they share, a bus that loses, doubles and delays, a keeper, and those
// that do without one.
//
//	worker ─call─▶ provider     a way of 5–50 ms, an answer after 2 s, a refusal at once
//	worker ─ask──▶ keeper       a way of 0.5–25 ms, each word by itself: they overtake each other
//	keeper ─give─▶ worker
type lab struct {
	plan    plan
	rng     *rand.Rand
	now     time.Duration // since the beginning
	events  events
	order   int
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
	hear(from *worker, word any)
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
		l.after(l.span(0, 2*time.Second), w.start)
	}
	l.center.begin()
	if p.storm {
		l.storms()
	}
	if p.works != nil {
		l.every(100*time.Millisecond, func() {
			for _, w := range l.workers {
				w.idle(!p.works(w.slot, l.now))
			}
		})
	}
	l.every(10*time.Millisecond, func() { l.sums.tick(l) })
	return l
}

// run lets the plan happen.
func (l *lab) run() result {
	for len(l.events) > 0 && l.events[0].at <= l.plan.length {
		e := heap.Pop(&l.events).(event)
		l.now = e.at
		e.do()
	}
	return l.sums.result(l)
}

func (l *lab) after(d time.Duration, do func()) {
	l.order++
	heap.Push(&l.events, event{l.now + d, l.order, do})
}

func (l *lab) every(d time.Duration, do func()) {
	l.after(d, func() { do(); l.every(d, do) })
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
		l.after(way, deliver)
	}
}

// storms kill and cut off workers. The office has its own.
func (l *lab) storms() {
	for _, w := range l.workers {
		l.after(l.exp(l.plan.deaths), w.die)
	}
	l.every(l.plan.kills*3/4, func() {
		for _, w := range l.workers {
			if l.rng.Float64() < 0.2 {
				w.cut = max(w.cut, l.now+l.span(5*time.Second, 20*time.Second))
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
func (l *lab) pass(word any) any {
	if l.plan.json == nil {
		return word
	}
	return l.plan.json(word)
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
