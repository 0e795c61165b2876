package keeper

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
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
		b.faults = append(b.faults, fmt.Sprintf("%v: ", b.l.Age())+fmt.Sprintf(format, args...))
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
func (d *activeKeeper) level() float64 {
	for _, s := range d.k.machine.Status(d.clock.at(d.o.l.Age()), 1).Lanes {
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

func (l *lab) measured() bool { return l.Age() >= l.plan.from }

func (s *sums) call(l *lab) {
	s.last = l.Age()
	if l.measured() {
		s.calls++
	}
}

func (s *sums) refusal(l *lab) {
	if !l.measured() {
		return
	}
	s.refused++
	if second := int(l.Age() / time.Second); second != s.second {
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
	dt := (l.Age() - s.ticked).Seconds()
	s.ticked = l.Age()
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
	r.words = float64(s.words) / (l.plan.length - l.plan.from).Seconds()
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

// usual is an organisation of 200 workers with 64 places each, calls of 2 s, and 500 calls a
// second bound by tokens: five minutes, measured from 90 s on.
func usual(seed uint64) plan {
	return plan{
		seed: seed, length: 5 * time.Minute, from: 90 * time.Second, workers: 200, places: 64, rate: 500_000, depth: 5, headers: true,
		latency: 2 * time.Second, tokens: 1000, spread: 0.5, storm: true, loss: 0.001,
	}
}

// small is a tenth of it, and shorter, for every day.
func small(seed uint64) plan {
	p := usual(seed)
	p.workers, p.rate, p.length, p.from = 40, 100_000, 190*time.Second, 70*time.Second
	return p
}

// A row is a world of the table.
type row struct {
	name string
	of   func(p plan) plan
}

var rows = []row{
	{"calm, bucket of 60 s, headers", func(p plan) plan { p.storm, p.depth = false, 60; return p }},
	{"storm, 60 s, headers", func(p plan) plan { p.depth = 60; return p }},
	{"storm, 5 s, headers", func(p plan) plan { return p }},
	{"storm, 1 s, headers", func(p plan) plan { p.depth = 1; return p }},
	{"storm, 1 s, no headers, limit told", func(p plan) plan { p.depth, p.headers, p.configured = 1, false, true; return p }},
	{"storm, 5 s, no headers, limit not told", func(p plan) plan { p.headers = false; return p }},
	{"storm, a tenth have all the work", func(p plan) plan {
		tenth := p.workers / 10
		p.works = func(slot int, _ time.Duration) bool { return slot < tenth }
		return p
	}},
	{"storm, idle and busy change each 20 s", func(p plan) plan {
		p.works = func(slot int, at time.Duration) bool {
			return (uint(slot)*2654435761>>7+uint(at/(20*time.Second))*40503>>3)%2 == 0
		}
		return p
	}},
	{"storm, the limit halves", func(p plan) plan { p.limit = from(p, 0.5); return p }},
	{"storm, the limit doubles", func(p plan) plan { p.limit = from(p, 2); return p }},
	{"storm, a call in a hundred draws 50 times", func(p plan) plan { p.heavy, p.tokens = 0.01, p.tokens/1.49; return p }},
}

// from changes the limit in the middle of what is measured.
func from(p plan, factor float64) func(time.Duration) float64 {
	middle := (p.from + p.length) / 2
	return func(at time.Duration) float64 {
		if at < middle {
			return 1
		}
		return factor
	}
}

var columns = []struct {
	name string
	of   func(plan) plan
}{
	{"permits", func(p plan) plan { return p }},
	{"next keeper knows only the rate", rateOnly},
	{"central", central},
	{"static", static},
	{"own AIMD", ownRate},
	{"own law", ownLaw},
}

// TestTable prints the table of worlds and rivals: use of what flows in · refusals in a
// thousand calls · Jain's index. It is for LAB=1, as it takes a quarter of an hour; SEEDS=3
// worlds of each row are run with permits, and one with each rival. FIRST=1 is the seed of the first.
// LAB=permits leaves the rivals out, LAB=small has small worlds, and LAB=small,permits both; ROW=halves has
// only the rows that are called so.
func TestTable(t *testing.T) {
	if os.Getenv("LAB") == "" {
		t.Skip("LAB=1 runs it")
	}
	seeds, first, columns, world := fromEnv("SEEDS", 3), fromEnv("FIRST", 1), columns, usual
	if strings.Contains(os.Getenv("LAB"), "small") {
		world = small
	}
	if strings.Contains(os.Getenv("LAB"), "permits") {
		columns = columns[:1]
	}
	rows := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !strings.Contains(r.name, os.Getenv("ROW")) })
	cells := make([][]string, len(rows))
	tickets := make(chan func(), len(rows)*len(columns))
	var all sync.WaitGroup
	for i, r := range rows {
		cells[i] = make([]string, len(columns))
		for j, c := range columns {
			worlds := 1
			if j == 0 {
				worlds = seeds
			}
			all.Add(1)
			tickets <- func() {
				defer all.Done()
				cells[i][j] = cell(t, first, worlds, func(seed uint64) plan { return c.of(r.of(world(seed))) })
				t.Logf("%s | %s | %s", r.name, c.name, cells[i][j])
			}
		}
	}
	close(tickets)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for do := range tickets {
				do()
			}
		}()
	}
	all.Wait()
	var b strings.Builder
	b.WriteString("|")
	for _, c := range columns {
		b.WriteString(" | " + c.name)
	}
	b.WriteString(" |\n")
	for i, r := range rows {
		b.WriteString("| " + r.name + " | " + strings.Join(cells[i], " | ") + " |\n")
	}
	t.Log("\n" + b.String())
}

// fromEnv is a number that the environment tells.
func fromEnv(name string, usual int) (n int) {
	if _, err := fmt.Sscan(os.Getenv(name), &n); err != nil {
		return usual
	}
	return n
}

// cell is the mean of some worlds.
func cell(t *testing.T, first, worlds int, of func(seed uint64) plan) string {
	var sum result
	for seed := first; seed < first+worlds; seed++ {
		r := newLab(of(uint64(seed))).run()
		for _, fault := range r.faults {
			t.Errorf("%s: seed %d: %s", t.Name(), seed, fault)
		}
		sum.use, sum.refused, sum.jain = sum.use+r.use, sum.refused+r.refused, sum.jain+r.jain
		sum.worst, sum.words = max(sum.worst, r.worst), sum.words+r.words
	}
	n := float64(worlds)
	return fmt.Sprintf("%.3f · %.3g · %.3f (%.0f/s)", sum.use/n, sum.refused/n, sum.jain/n, sum.words/n)
}
