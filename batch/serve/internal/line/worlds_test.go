package line

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var worlds = flag.Int("worlds", 1000, "simulated worlds of the line")

// world is a pool with a fixed rate, clients that come and go, and a book of its own that is kept without the
// line's arithmetic.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	now  time.Time
	line *Line
	rate float64 // of cost, per second

	free    time.Time // when the next may leave
	places  []Place
	in, out map[*Request]bool // waiting, gone
	entered int
	ended   int
	left    []departure
	came    map[*Request]time.Time
	full    int
}

type departure struct {
	at     time.Time
	client string
	class  Class
	cost   float64
	wait   time.Duration
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x6c696e65)) // the word "line"
	w := &world{
		t: t, seed: seed, rng: rng, now: noon, rate: 0.5 + 20*rng.Float64(), free: noon,
		in: map[*Request]bool{}, out: map[*Request]bool{}, came: map[*Request]time.Time{},
	}
	w.line = New(Config{MaxWaiting: 20 + rng.IntN(400), PerClient: 10 + rng.IntN(200)})
	uneven := rng.IntN(2) == 0
	for i := range 1 + rng.IntN(8) {
		p := Place{Class: Class(rng.IntN(3)), Client: fmt.Sprint("c", i), Weight: 1 + rng.IntN(4)}
		if rng.IntN(4) == 0 {
			p.Client = "c0" // the same client in another class
		}
		if rng.IntN(4) == 0 {
			p.Key = "c1" // a key that gives names: also that of another, and its own
		}
		if uneven {
			p.Cost = 0.2 + 3*rng.Float64()
		}
		if rng.IntN(5) == 0 {
			p.MaxInFlight = 1 + rng.IntN(5)
		}
		w.places = append(w.places, p)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d at %v: %s", w.seed, w.now.Sub(noon), fmt.Sprintf(format, args...))
}

func (w *world) come() {
	p := w.places[w.rng.IntN(len(w.places))]
	if p.Cost > 0 {
		p.Cost *= 0.5 + w.rng.Float64()
	}
	if w.rng.IntN(3) == 0 {
		p.Latest = w.now.Add(time.Duration(w.rng.Int64N(int64(2 * time.Minute))))
	}
	if w.rng.IntN(4) == 0 {
		p.Tag = fmt.Sprint("t", w.rng.IntN(3))
	}
	for range 1 + w.rng.IntN(30) {
		r, err := w.line.Enter("m", p)
		if err != nil {
			w.full++
			own := 0
			for r := range w.in {
				if r.Client == p.Client {
					own++
				}
			}
			if len(w.in) < w.line.cfg.MaxWaiting && own < w.line.cfg.PerClient {
				w.fail("refused with %d waiting, %d of them its own: %v", len(w.in), own, err)
			}
			return
		}
		w.entered++
		w.in[r] = true
		w.came[r] = w.now
	}
}

// some returns a request of a set, the same one for the same seed.
func (w *world) some(of map[*Request]bool) *Request {
	all := make([]*Request, 0, len(of))
	for r := range of {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Request) int { return int(a.seq) - int(b.seq) })
	if len(all) == 0 {
		return nil
	}
	return all[w.rng.IntN(len(all))]
}

func (w *world) leave(r *Request, from map[*Request]bool) {
	if r == nil {
		return
	}
	w.line.Leave(r)
	w.line.Leave(r) // twice is once
	delete(from, r)
	w.ended++
}

// mayGo reports whether any request may, by the world's own books.
func (w *world) mayGo() bool {
	flying := map[string]int{}
	for r := range w.out {
		flying[r.key()]++
	}
	for r := range w.in {
		if r.client.maxInFlight == 0 || flying[r.key()] < r.client.maxInFlight {
			return true
		}
	}
	return false
}

func (w *world) depart() {
	for !w.free.After(w.now) {
		r := w.line.Next("m")
		if r == nil {
			if w.mayGo() {
				w.fail("nobody goes, and somebody could")
			}
			w.free = w.now
			return
		}
		if !w.in[r] {
			w.fail("a request goes that does not wait")
		}
		if !r.Latest.IsZero() && w.now.After(r.Latest) {
			w.fail("a request goes %v too late", w.now.Sub(r.Latest))
		}
		for o := range w.in {
			if o.leaf == r.leaf && o.goesBefore(r) {
				w.fail("a request overtakes one of its own tag that is less patient")
			}
		}
		delete(w.in, r)
		w.out[r] = true
		w.left = append(w.left, departure{at: w.now, client: r.Client, class: r.Class, cost: r.cost, wait: w.now.Sub(w.came[r])})
		w.free = w.free.Add(time.Duration(r.cost / w.rate * float64(time.Second)))
	}
}

// balances compares the line with the books.
func (w *world) balances() {
	if w.line.Waiting() != len(w.in) || w.entered != w.ended+len(w.in)+len(w.out) {
		w.fail("%d wait, by the books %d; %d entered, %d ended, %d have gone", w.line.Waiting(), len(w.in), w.entered, w.ended, len(w.out))
	}
	waiting, flying := map[string]int{}, map[string]int{}
	for r := range w.in {
		waiting[r.key()]++
	}
	for r := range w.out {
		flying[r.key()]++
	}
	for name, c := range w.line.clients {
		if c.waiting != waiting[name] || c.inFlight != flying[name] {
			w.fail("%s has %d waiting and %d gone, by the books %d and %d", name, c.waiting, c.inFlight, waiting[name], flying[name])
		}
	}
	n := 0
	for _, of := range w.line.names {
		n += of
	}
	if n != len(w.in) {
		w.fail("the counts by name add up to %d of %d", n, len(w.in))
	}
	for _, root := range w.line.pools {
		w.sums(root)
	}
}

// sums checks the invariants of the tree.
func (w *world) sums(f *flow) (n int, cost float64) {
	n = len(f.requests)
	for _, r := range f.requests {
		cost += r.cost
	}
	for _, c := range f.children {
		m, sum := w.sums(c)
		n, cost = n+m, cost+sum
		if (c.activeIndex >= 0) != c.mayGo() {
			w.fail("%s is in the wrong place: active %v", c.name, c.activeIndex >= 0)
		}
	}
	if n != f.waiting || math.Abs(cost-f.cost) > 1e-6 {
		w.fail("%s holds %d and %g, and says %d and %g", f.name, n, cost, f.waiting, f.cost)
	}
	return n, cost
}

func TestWorlds(t *testing.T) {
	full, late := 0, 0
	for seed := range uint64(*worlds) {
		w := newWorld(t, seed)
		for step := range 400 {
			w.now = w.now.Add(time.Duration(w.rng.ExpFloat64() * float64(300*time.Millisecond)))
			for _, r := range w.line.Expire(w.now) {
				if !w.in[r] || w.now.Before(r.Latest) {
					w.fail("a request is taken out %v before its time", r.Latest.Sub(w.now))
				}
				late++
				delete(w.in, r)
				w.ended++
			}
			switch w.rng.IntN(8) {
			case 0:
				w.come()
			case 1:
				w.leave(w.some(w.in), w.in)
			case 2:
				w.leave(w.some(w.out), w.out)
			}
			for len(w.out) > 20 {
				w.leave(w.some(w.out), w.out)
			}
			w.depart()
			if step%8 == 0 { // it looks at every request
				w.balances()
			}
		}
		for len(w.in)+len(w.out) > 0 {
			w.leave(w.some(w.in), w.in)
			w.leave(w.some(w.out), w.out)
		}
		if w.balances(); len(w.line.pools)+len(w.line.clients)+len(w.line.patience) > 0 {
			w.fail("an empty line keeps %d pools, %d clients", len(w.line.pools), len(w.line.clients))
		}
		full += w.full
	}
	if full == 0 || late == 0 {
		t.Errorf("%d were refused and %d were late: the worlds try too little", full, late)
	}
}

// In each world the clients keep something waiting for five minutes. Each has its share of every minute.
func TestWorldsOfShares(t *testing.T) {
	for seed := range uint64(*worlds / 10) {
		w := newWorld(t, seed)
		w.line = New(Config{})
		w.rate = 5 + w.rate
		names := map[string]bool{}
		w.places = slices.DeleteFunc(w.places, func(p Place) bool {
			had := names[p.Client]
			names[p.Client] = true
			return had
		})
		waiting := map[string]int{}
		for i := range w.places {
			w.places[i].MaxInFlight = 0
			waiting[w.places[i].Client] = 0
		}
		for w.now.Sub(noon) < 5*time.Minute {
			for _, p := range w.places {
				for ; waiting[p.Client] < 3+w.rng.IntN(20); waiting[p.Client]++ {
					q := p
					if q.Cost > 0 {
						q.Cost *= 0.5 + w.rng.Float64()
					}
					r, err := w.line.Enter("m", q)
					if err != nil {
						w.fail("%v", err)
					}
					w.in[r] = true
					w.came[r] = w.now
				}
			}
			n := len(w.left)
			w.depart()
			for _, d := range w.left[n:] {
				waiting[d.client]--
			}
			w.now = w.free
		}
		w.shares()
	}
}

// shares checks each whole minute.
func (w *world) shares() {
	ofClass, weights, largest := map[Class]float64{}, map[Class]float64{}, 0.0
	for _, p := range w.places {
		weights[p.Class] += float64(p.Weight)
		ofClass[p.Class] = classes[p.Class].share
	}
	all := 0.0
	for _, share := range ofClass {
		all += share
	}
	for _, d := range w.left {
		largest = max(largest, d.cost)
	}
	for minute := range 5 {
		from := noon.Add(time.Duration(minute) * time.Minute)
		sum, total := map[string]float64{}, 0.0
		for _, d := range w.left {
			if !d.at.Before(from) && d.at.Before(from.Add(time.Minute)) {
				sum[d.client] += d.cost
				total += d.cost
			}
		}
		for _, p := range w.places {
			fair := total * classes[p.Class].share / all * float64(p.Weight) / weights[p.Class]
			if got := sum[p.Client]; got < 0.9*fair-2*largest {
				w.fail("minute %d: %s of %v with weight %d has %.1f of %.1f, fair are %.1f", minute, p.Client, p.Class, p.Weight, got, total, fair)
			}
		}
	}
}

// While a busier class comes and goes, batch has what it leaves, and its own share at least.
func TestBatchBehindInteractive(t *testing.T) {
	for _, try := range []struct{ load, least float64 }{{0.8, 0.19}, {2, 0.04}} {
		rng := rand.New(rand.NewPCG(1, 2))
		l := New(Config{})
		enter(t, l, Place{Class: Batch, Client: "batch"}, 20_000)
		const seconds, rate = 600, 10
		next, batch := 0.0, 0
		for step := range seconds * rate {
			for ; next <= float64(step)/rate; next += rng.ExpFloat64() / (try.load * rate) {
				enter(t, l, Place{Client: fmt.Sprint(rng.IntN(5))}, 1)
			}
			batch += goes(t, l, 1)["batch"] / 2 // counted as client and as class
		}
		if share := float64(batch) / (seconds * rate); share < try.least {
			t.Errorf("interactive at %.0f %% leaves batch %.1f %%, want %.0f", 100*try.load, 100*share, 100*try.least)
		} else {
			t.Logf("interactive at %.0f %% leaves batch %.1f %%", 100*try.load, 100*share)
		}
	}
}
