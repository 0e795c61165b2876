package keeper

import (
	"fmt"
	"math"
	"time"

	"github.com/headrace/headrace/cluster/permit"
)

// The book is what the lab itself knows of permits, by the words that were said: it finds a
// call that left without one, one that is used twice or for too dear a call, and one that is
// used too late.
type book struct {
	l      *lab
	given  map[permitName]*bookPermit
	faults []string
}

type permitName struct {
	epoch  uint64
	number permit.Number
}

// A bookPermit is a permit as a keeper gave it.
type bookPermit struct {
	worker string
	cost   permit.Cost
	until  time.Time // by its worker's clock
	left   time.Time // when a call left with it, as was reported; zero: none was
	unused bool
}

func (b *book) fail(format string, args ...any) {
	if len(b.faults) < 10 {
		b.faults = append(b.faults, fmt.Sprintf("%v: ", b.l.now)+fmt.Sprintf(format, args...))
	}
}

// gave notes what a keeper gives.
func (b *book) gave(g *permit.Give) {
	var until time.Time
	if w := b.l.named(g.Worker); w != nil {
		until = w.asks[askName{g.Job, g.Limit, g.Heard}].Add(permit.Life)
	}
	for _, p := range g.Permits {
		name := permitName{g.Epoch, p.Number}
		if b.given[name] != nil {
			b.fail("permit %v is given twice", name)
		}
		b.given[name] = &bookPermit{worker: g.Worker, cost: p.Cost, until: until}
	}
}

type askName struct {
	job, limit string
	seq        uint64
}

// asked looks at what a worker says, before the bus can lose it.
func (b *book) asked(w *worker, a *permit.Ask) {
	now := w.now()
	w.asks[askName{a.Job, a.Limit, a.Seq}] = now
	delete(w.asks, askName{a.Job, a.Limit, a.Seq - 2000})
	for _, r := range a.Reports {
		name := permitName{r.Epoch, r.Number}
		g := b.given[name]
		if g == nil || g.worker != w.name {
			b.fail("%s reports on permit %v, which it was not given", w.name, name)
			continue
		}
		if r.Unused {
			g.unused = true
		} else {
			b.used(w, g, name, &r, now.Add(-r.Age))
		}
		if g.unused && !g.left.IsZero() {
			b.fail("permit %v was used and not used", name)
		}
	}
}

// used looks at a call that left with a permit.
func (b *book) used(w *worker, g *bookPermit, name permitName, r *permit.Report, left time.Time) {
	switch {
	case !g.left.IsZero() && !g.left.Equal(left):
		b.fail("permit %v was used at %v and at %v", name, g.left, left)
	case r.Cost.Input > g.cost.Input:
		b.fail("permit %v is for %v and was used for %v", name, g.cost, r.Cost)
	case !left.Before(g.until):
		b.fail("permit %v was used %v too late", name, left.Sub(g.until))
	}
	if g.left.IsZero() {
		w.reported++
	}
	g.left = left
}

// level returns the level of the only limit by the books.
func (d *desk) level() float64 {
	for _, s := range d.k.machine.Status(d.clock.at(d.o.l.now), 1).Lanes {
		return s.Level.Tokens
	}
	return 0
}

// sums are what is measured.
type sums struct {
	calls, refused, words int
	served, inflow        float64 // tokens
	arrived               float64
	ticked                time.Duration
	worst                 int // refusals in a second
	second                int
	ofSecond              int
	jobs                  map[string]float64
	last                  time.Duration // a call left
	onRefusal             func(float64)
}

func (l *lab) measured() bool { return l.now >= l.plan.from }

func (s *sums) call(l *lab) {
	s.last = l.now
	if l.measured() {
		s.calls++
	}
}

func (s *sums) refusal(l *lab) {
	if !l.measured() {
		return
	}
	s.refused++
	if second := int(l.now / time.Second); second != s.second {
		s.second, s.ofSecond = second, 0
	}
	s.ofSecond++
	s.worst = max(s.worst, s.ofSecond)
}

func (s *sums) serve(l *lab, w *worker, x *simLane, tokens float64) {
	if !l.measured() {
		return
	}
	s.served += tokens
	w.served += tokens
	x.served += tokens
	if s.jobs == nil {
		s.jobs = map[string]float64{}
	}
	s.jobs[x.job] += tokens
}

// tick adds up what flows in, and for how long each worker could have called.
func (s *sums) tick(l *lab) {
	dt := (l.now - s.ticked).Seconds()
	s.ticked = l.now
	if !l.measured() {
		s.words = 0
		return
	}
	for _, b := range l.buckets {
		s.inflow += dt * b.rate()
	}
	for _, w := range l.workers {
		if w.reached() && !w.quiet {
			w.upTime += dt
		}
	}
}

// A result is a line of the table.
type result struct {
	use, refused, jain float64 // share of the inflow, in a thousand calls, 1 is fair
	worst              int     // refusals in one second
	words              float64 // on the bus, a second
	jobs               map[string]float64
	faults             []string
}

func (r result) String() string { return fmt.Sprintf("%.3f · %.2g · %.2f", r.use, r.refused, r.jain) }

func (s *sums) result(l *lab) result {
	r := result{use: s.served / s.inflow, refused: 1000 * float64(s.refused) / math.Max(1, float64(s.calls)), worst: s.worst, faults: l.book.faults}
	r.words = float64(s.words) / (l.now - l.plan.from).Seconds()
	var sum, squares, n float64
	for _, w := range l.workers {
		if w.upTime < 5 {
			continue
		}
		x := w.served / w.upTime
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	r.jain = sum * sum / math.Max(1e-9, n*squares)
	r.jobs = map[string]float64{}
	for name, tokens := range s.jobs {
		r.jobs[name] = tokens / s.served
	}
	return r
}
