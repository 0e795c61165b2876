package keeper

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// random is a world that nobody would build: few workers or many, a bus that loses a tenth of
// all words, ways of a second, keepers and workers that die all the time.
func random(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 7))
	of := func(x ...float64) float64 { return x[rng.IntN(len(x))] }
	p := plan{
		name: fmt.Sprint("seed ", seed), seed: seed, length: 40 * time.Second, from: time.Second, workers: 1 + rng.IntN(12), places: int(of(1, 4, 64)),
		depth: of(1, 2, 5, 30), headers: rng.IntN(2) == 0, told: rng.IntN(2) == 0, latency: time.Duration(of(0.01, 0.2, 2, 8) * 1e9), tokens: 1000,
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
		p.watched = func(d *desk) {
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
		p.told, p.headers, p.spread, p.heavy, p.limits, p.quota, p.limit = true, false, 0, 0, nil, 0, nil
		p.rate = max(p.rate, 50_000/p.depth) // a bucket of many calls
		p.knows = &machine.LaneConfig{Limits: limiter.Limits{TPM: 60 * p.rate, Burst: time.Duration(p.depth * 1e9)}}
		var d *desk
		p.watched = func(latest *desk) { d = latest }
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
