package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// right reports what the book found.
func right(t *testing.T, r result) {
	t.Helper()
	for _, fault := range r.faults {
		t.Error(fault)
	}
}

// In storms the limit is used, nothing is refused where headers or the user tell it, and all
// workers have as much. A tenth of the organisation of the table, and shorter.
func TestStorms(t *testing.T) {
	for _, c := range []struct {
		name    string
		depth   float64
		headers bool
		use     float64
	}{
		{"60 s, headers", 60, true, 0.99},
		{"5 s, headers", 5, true, 0.99},
		{"1 s, headers", 1, true, 0.96},
		{"1 s, told", 1, false, 0.93},
	} {
		p := small(1)
		p.depth, p.headers, p.configured = c.depth, c.headers, !c.headers
		r := newLab(p).run()
		right(t, r)
		t.Logf("%s: %v, %.0f words a second", c.name, r, r.words)
		if r.use < c.use || r.refused > 0 || r.jain < 0.98 {
			t.Errorf("%s: %v; at least %.2f of the limit is to be used, nothing refused, and 0.98 fair", c.name, r, c.use)
		}
	}
}

// Rivals are not as good, in the worlds where they should not be: else the table would compare
// with nothing.
func TestRivals(t *testing.T) {
	tenth := small(1)
	tenth.works = func(slot int, _ time.Duration) bool { return slot < tenth.workers/10 }
	if r := newLab(static(tenth)).run(); r.use > 0.3 {
		t.Errorf("a tenth have all the work, and of parts of the limit %v is used", r)
	}
	shallow := small(1)
	shallow.depth = 1
	if r := newLab(ownLaw(shallow)).run(); r.refused < 20 {
		t.Errorf("each follows the law by itself, and %v is refused", r)
	}
	if r := newLab(ownRate(shallow)).run(); r.refused < 2 {
		t.Errorf("each has a rate of its own, and %v is refused", r)
	}
	if r := newLab(central(shallow)).run(); r.use < 0.85 || r.refused > 0 {
		t.Errorf("each call asks by itself, and %v", r)
	}
}

// A call that draws fifty times as much as others waits for its turn, and is not refused.
func TestDearCalls(t *testing.T) {
	p := small(1)
	p.heavy, p.tokens = 0.01, p.tokens/1.49
	r := newLab(p).run()
	right(t, r)
	if r.use < 0.98 || r.refused > 0 || r.jain < 0.95 {
		t.Errorf("%v", r)
	}
}

func TestTheLimitChanges(t *testing.T) {
	for _, factor := range []float64{0.5, 2} {
		p := small(1)
		p.limit = from(p, factor)
		r := newLab(p).run()
		right(t, r)
		t.Logf("%v times: %v, at worst %d in a second", factor, r, r.worst)
		if r.use < 0.96 || r.refused > 1 || r.jain < 0.97 {
			t.Errorf("%v times: %v", factor, r)
		}
	}
}

// Nobody tells the limit, and no header shows it: refusals find it, a wave at a time.
func TestAnUnknownLimit(t *testing.T) {
	p := small(1)
	p.headers = false
	r := newLab(p).run()
	right(t, r)
	t.Logf("%v, at worst %d in a second", r, r.worst)
	if r.use < 0.9 || r.refused > 20 || r.jain < 0.97 {
		t.Errorf("%v", r)
	}
}

// The same where so many are on their way when a refusal comes that each wave is a hundred: bursts must not be taken for the
// rate. Of this seed they were once, and a keeper whose first news was a refusal gave nothing for a minute.
func TestAnUnknownLargeLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	p := usual(201)
	p.headers, p.length, p.from = false, 4*time.Minute, 90*time.Second
	r := newLab(p).run()
	right(t, r)
	t.Logf("%v, at worst %d in a second", r, r.worst)
	if r.use < 0.97 || r.refused > 20 || r.jain < 0.98 {
		t.Errorf("%v", r)
	}
}

// Jobs of weights 1, 1 and 2 get a quarter, a quarter and a half, over any half a minute.
func TestShares(t *testing.T) {
	p := small(1)
	p.jobs = []simJob{{"a", 1}, {"b", 1}, {"c", 2}}
	p.length, p.from = 90*time.Second, 60*time.Second
	r := newLab(p).run()
	right(t, r)
	for _, j := range p.jobs {
		if want := j.weight / 4; math.Abs(r.jobs[j.name]-want) > 0.03*want*2 {
			t.Errorf("%s has %.3f, and not %.3f", j.name, r.jobs[j.name], want)
		}
	}
	t.Logf("%v", r.jobs)
}

// Weights hold between jobs whose calls differ in size, where tokens bind.
func TestSharesOfUnequalCalls(t *testing.T) {
	p := small(1)
	p.storm, p.jobs = false, []simJob{{"small", 1}, {"large", 1}}
	p.sizes = map[string]float64{"large": 5}
	p.length, p.from = 120*time.Second, 60*time.Second
	r := newLab(p).run()
	right(t, r)
	if math.Abs(r.jobs["large"]-0.5) > 0.03 {
		t.Errorf("%v", r.jobs)
	}
}

// A quota that is used up stops every worker, and once.
func TestAQuotaStopsAll(t *testing.T) {
	p := small(1)
	p.storm, p.quota, p.length = false, 60*time.Second, 90*time.Second
	p.from = p.quota
	l := newLab(p)
	r := l.run()
	right(t, r)
	for _, w := range l.workers {
		s := w.m.Status(w.now(), 1).Lanes[0]
		if s.Phase != machine.Stopped || !errors.Is(s.Cause, provider.QuotaExhausted) {
			t.Fatalf("worker %s is %v: %v", w.name, s.Phase, s.Cause)
		}
	}
	if r.worst > 60 || l.sums.last > p.quota+2*time.Second {
		t.Errorf("%d calls met it, the last left %v after it", r.worst, l.sums.last-p.quota)
	}
	t.Logf("%d calls met it, the last left %v after it", r.worst, l.sums.last-p.quota)
}

// Who loses touch with the keeper stops within a permit's life.
func TestCutOffWorkersStop(t *testing.T) {
	for _, slow := range []float64{1, 20} {
		p := small(1)
		p.storm, p.slow, p.length, p.from, p.places = false, slow, 40*time.Second, 0, 512
		p.limit = func(time.Duration) float64 { return 10 } // it does not bind
		const at = 30 * time.Second
		l := newLab(p)
		l.In(at, func() {
			for _, w := range l.workers {
				w.cut = time.Hour
			}
		})
		right(t, l.run())
		if l.sums.last < at-100*time.Millisecond || l.sums.last >= at+permit.Life {
			t.Errorf("ways %v times as long: the last call left %v after the bus was lost", slow, l.sums.last-at)
		}
	}
}

// Two limits at once are each used as if it were alone, though they share workers' places.
func TestTwoLimits(t *testing.T) {
	p := small(1)
	p.limits = []string{"org", "other"}
	p.rate /= 2
	r := newLab(p).run()
	right(t, r)
	if r.use < 0.98 || r.refused > 0 {
		t.Errorf("%v", r)
	}
}

// Two keepers at once, each of half of the workers, for ten seconds: each law takes the other
// for a neighbour. What that costs is bounded, and over when one of them is gone.
func TestASplit(t *testing.T) {
	for _, c := range []struct{ depth, refused float64 }{{60, 0}, {5, 60}, {1, 60}} {
		var sum float64
		for seed := range uint64(3) {
			p := small(seed + 1)
			p.storm, p.depth, p.split, p.from, p.length = false, c.depth, [2]time.Duration{30 * time.Second, 40 * time.Second}, 30*time.Second, 70*time.Second
			l := newLab(p)
			right(t, l.run())
			sum += float64(l.sums.refused) / 3
		}
		t.Logf("bucket of %v s: %.0f refused", c.depth, sum)
		if sum > c.refused {
			t.Errorf("bucket of %v s: %.0f refused, and %.0f at most are expected", c.depth, sum, c.refused)
		}
	}
}

// Messages that went over a bus as JSON do the same as those that did not.
func TestOverJSON(t *testing.T) {
	run := func(p plan) result {
		r := newLab(p).run()
		right(t, r)
		return r
	}
	p := small(3)
	p.workers, p.rate, p.length, p.from = 10, 25_000, 40*time.Second, 0
	plain := run(p)
	p.json = func(message any) any {
		b := must.Get(json.Marshal(message))(t)
		var to any
		switch message.(type) {
		case *permit.Ask:
			to = &permit.Ask{}
		case *permit.Give:
			to = &permit.Give{}
		case *permit.Cool:
			to = &permit.Cool{}
		}
		must.Do(t, json.Unmarshal(b, to))
		return to
	}
	if over := run(p); over.use != plain.use || over.refused != plain.refused || over.jain != plain.jain || over.words != plain.words {
		t.Errorf("%v, and over JSON %v", plain, over)
	}
}

// Same seed, same world.
func TestSameSeedSameWorld(t *testing.T) {
	p := small(2)
	p.length, p.from = 70*time.Second, 0
	if a, b := newLab(p).run(), newLab(p).run(); a.use != b.use || a.jain != b.jain || a.words != b.words {
		t.Errorf("%v %v, and again %v %v", a, a.words, b, b.words)
	}
}

// What a call was thought to cost is seldom what it costs: estimates that are twice the truth
// cost no use, as the rest comes back.
func TestEstimates(t *testing.T) {
	for _, estimate := range []float64{0.8, 2} {
		p := small(1)
		p.estimate = estimate
		r := newLab(p).run()
		right(t, r)
		t.Logf("estimates are %v times the truth: %v", estimate, r)
		if r.use < 0.97 || r.refused > 0 {
			t.Errorf("estimates are %v times the truth: %v", estimate, r)
		}
	}
}

// Calls that take no longer than the way to the keeper fill the limit all the same: what is in flight
// there are permits, and they are out for as long as the way takes, too.
func TestShortCalls(t *testing.T) {
	for _, workers := range []int{3, 20} {
		p := small(1)
		p.storm, p.latency, p.workers, p.places, p.rate = false, time.Millisecond, workers, 256, 2_000_000
		p.length, p.from = 40*time.Second, 20*time.Second
		r := newLab(p).run()
		right(t, r)
		t.Logf("%d workers: %v", workers, r)
		if r.use < 0.99 || r.refused > 0 || r.jain < 0.97 {
			t.Errorf("%d workers: %v", workers, r)
		}
	}
}

// random is a world that nobody would build: few workers or many, a bus that loses a tenth of
// all words, ways of a second, keepers and workers that die all the time.
func random(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 7))
	of := func(x ...float64) float64 { return x[rng.IntN(len(x))] }
	p := plan{
		name: fmt.Sprint("seed ", seed), seed: seed, length: 40 * time.Second, from: time.Second, workers: 1 + rng.IntN(12), places: int(of(1, 4, 64)),
		depth: of(1, 2, 5, 30), headers: rng.IntN(2) == 0, configured: rng.IntN(2) == 0, latency: time.Duration(of(0.01, 0.2, 2, 8) * 1e9), tokens: 1000,
		spread: of(0, 0.5), heavy: of(0, 0, 0.02), storm: rng.IntN(3) == 0, loss: of(0, 0.001, 0.1), slow: of(0, 1, 10, 40),
	}
	p.rate = 1000 * of(0.5, 3, 20, 100)
	if rng.IntN(3) == 0 {
		p.deaths, p.kills = time.Duration(of(5, 20)*1e9), time.Duration(of(7, 15)*1e9)
	}
	for i := range int(of(1, 1, 3)) {
		p.jobs = append(p.jobs, simJob{fmt.Sprint("job", i), of(1, 2, 0.5)})
	}
	if rng.IntN(4) == 0 {
		p.limits = []string{"org", "other"}
	}
	if rng.IntN(4) == 0 {
		p.works = func(slot int, at time.Duration) bool { return (slot+int(at/(3*time.Second)))%3 > 0 }
	}
	if rng.IntN(6) == 0 {
		p.quota = time.Duration(of(5, 20) * 1e9)
	}
	if rng.IntN(6) == 0 {
		p.limit = from(p, of(0.3, 3))
	}
	return p
}

// Whatever happens, the books of every keeper are right after each decision, no call leaves
// without a permit, none is used twice, too late, or for a dearer call.
func TestRandomWorlds(t *testing.T) {
	for seed := range seeds(40) {
		p := random(seed)
		p.watched = func(d *activeKeeper) {
			if fault := audit(d.k); fault != "" {
				d.o.l.book.fail("%s", fault)
			}
		}
		l := newLab(p)
		l.run()
		for _, fault := range l.book.faults {
			t.Errorf("%s: %s", p.name, fault)
		}
	}
}

// seeds are those of random worlds: as many as SEEDS says, from SEED_BASE on.
func seeds(usual uint64) func(func(uint64) bool) {
	first := uint64(1)
	_, _ = fmt.Sscan(os.Getenv("SEED_BASE"), &first)
	_, _ = fmt.Sscan(os.Getenv("SEEDS"), &usual)
	return func(yield func(uint64) bool) {
		for seed := range usual {
			if !yield(first + seed) {
				return
			}
		}
	}
}

// The provider's bucket holds what the keeper's books say and what is on its way, p ≥ ℓ + S, as
// nothing that happens makes p − ℓ − S less: workers and keepers die, words are lost, ways are
// long. S is here what was ever granted, has not arrived and did not come back, to a permit.
// The bucket is what the user has told, to the unit, and so are costs.
//
// There is one exception. The gauge caps ℓ at the bucket's capacity C, and not at C − S, so that
// while the bucket is full the books go on rising: by what flows in while permits are on their
// way. It needs a reserve of that much.
func TestTheBucketHoldsWhatIsPromised(t *testing.T) {
	for seed := range seeds(40) {
		p := random(seed)
		p.configured, p.headers, p.spread, p.heavy, p.limits, p.quota, p.limit = true, false, 0, 0, nil, 0, nil
		p.rate = max(p.rate, 50_000/p.depth) // a bucket of many calls
		p.knows = &machine.LaneConfig{Limits: limiter.Limits{TPM: 60 * p.rate, Burst: time.Duration(p.depth * 1e9)}}
		var d *activeKeeper
		p.watched = func(latest *activeKeeper) { d = latest }
		l := newLab(p)
		const step = 5 * time.Millisecond
		before := 0.0
		l.every(step, func() {
			if d == nil {
				return
			}
			b := l.buckets["org"]
			b.refill()
			c := l.center.(*office).totals()
			ahead := d.level() + float64(c.Given-c.Unused)*p.tokens - l.sums.arrived - b.level
			clocks := 2e-3*p.rate*step.Seconds() + 1e-6*p.tokens // two go wrong by 500 ppm each
			if grown := ahead - before; grown > clocks && !b.full {
				l.book.fail("the bucket was not full, and the books promise %.0f tokens more than a moment ago", grown)
			}
			before, b.full = ahead, false
		})
		r := l.run()
		for _, fault := range r.faults {
			t.Errorf("%s: %s", p.name, fault)
		}
		if r.refused > 0 {
			t.Errorf("%s: %.3g of a thousand calls were refused", p.name, r.refused)
		}
	}
}
