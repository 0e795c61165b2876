package tests

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// A pooled run is a pool of lanes, each with a server of its own, in virtual time.
type pooled struct {
	servers map[string]*gates.Server
	lane    machine.LaneConfig
	run     machine.RunConfig
	poolOf  func(item int) string // nil: the first
	watch   func(at time.Duration, inFlight map[string]int)

	calls    map[string][]time.Duration // when they left
	flows    map[string][]time.Duration // when the lane began to
	refusals int
}

// runs takes so many items through the pool and returns how long that took.
func (p *pooled) runs(t *testing.T, items int) time.Duration {
	t.Helper()
	p.calls, p.flows, p.refusals = map[string][]time.Duration{}, map[string][]time.Duration{}, 0
	m, w := machine.New(machine.Config{Lane: p.lane, Seed: 1}), virtual.Begin(lab.Start)
	m.Step(w.Now(), machine.RunOpened(1, p.run))
	all := make([]*machine.Item, items)
	for i := range all {
		all[i] = &machine.Item{Seq: uint64(i), Cost: limiter.Cost{Requests: 1}}
		if p.poolOf != nil {
			all[i].Pool = p.poolOf(i)
		} else {
			all[i].Pool = p.run.Pools[0].Name
		}
	}
	m.Step(w.Now(), machine.Offered(1, all))
	inFlight := map[string]int{}
	left := items
	for left > 0 {
		r := m.Ready(w.Now())
		for _, change := range r.Transitions {
			if change.To == machine.Flowing {
				p.flows[change.Lane] = append(p.flows[change.Lane], w.Age())
			}
		}
		for _, g := range r.Grants {
			v := p.servers[g.Lane].Decide(w.Now(), sim.Call{})
			w.In(v.Latency, func() {
				inFlight[g.Lane]--
				if p.ended(m, w.Now(), g, &v) {
					left--
				}
			})
			p.calls[g.Lane] = append(p.calls[g.Lane], w.Age())
			inFlight[g.Lane]++
		}
		if p.watch != nil {
			p.watch(w.Age(), inFlight)
		}
		if !w.Pass(r.WakeAt) || w.Age() > 24*time.Hour {
			t.Fatalf("%d items of %d are left, and nothing will happen", left, items)
		}
		for w.Do() {
		}
	}
	return w.Age()
}

// ended tells the machine of the call's end, and reports whether it was answered.
func (p *pooled) ended(m *machine.Machine, now time.Time, g machine.Grant, v *sim.Verdict) bool {
	o := machine.Outcome{Latency: v.Latency, Directed: v.HasRetryAfter, RetryAfter: v.RetryAfter}
	if q := v.Requests; v.HasHeaders && q.Limit > 0 {
		o.Sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: q.Limit, Window: time.Minute, Remaining: math.Floor(q.Remaining), Reset: q.Reset, HasReset: true,
		}}
	}
	switch v.Kind {
	case sim.Accepted:
		o.Signal = machine.Succeeded
		m.Step(now, machine.Settled(g, o))
		return true
	case sim.RateLimited:
		p.refusals++
		o.Signal = machine.Throttled
	default:
		o.Signal = machine.Overloaded
	}
	m.Step(now, machine.HandedOver(g, o))
	return false
}

// rpm is a server of so many requests a minute, which shows them in headers.
func rpm(n float64, outages ...gates.Outage) *gates.Server {
	return rpmIn(n, time.Second, outages...)
}

// rpmIn is such a server whose calls take so long.
func rpmIn(n float64, takes time.Duration, outages ...gates.Outage) *gates.Server {
	return gates.NewServer(gates.Config{
		Gates: []gates.Gate{gates.NewBucket(gates.Steady(n/60), time.Second)}, Answers: gates.Answers{Median: takes},
		Refusal: 50 * time.Millisecond, Status: sim.RateLimited, Headers: true, Retry: true, Named: -1, Outages: outages,
	})
}

// unlimited is a server that answers any call after so long.
func unlimited(takes time.Duration) *gates.Server {
	return gates.NewServer(gates.Config{Answers: gates.Answers{Median: takes}})
}

// Lanes of 600 and 300 requests a minute bring what both allow, without a refusal.
func TestPoolOfTwoRates(t *testing.T) {
	p := pooled{
		servers: map[string]*gates.Server{"a": rpm(600), "b": rpm(300)},
		run:     machine.RunConfig{Pools: []machine.PoolConfig{{Name: "p", Lanes: []string{"a", "b"}}}},
	}
	in := p.runs(t, 9000)
	t.Logf("9000 items in %v, %d refused", in, p.refusals)
	if in > 612*time.Second || p.refusals > 0 {
		t.Errorf("9000 items at 900 a minute took %v, want 612s at most; %d refused", in, p.refusals)
	}
}

// Ten lanes of 60 requests a minute bring what ten allow, and a hundred what a hundred do, with
// hardly a refusal.
func TestPoolOfManyLanes(t *testing.T) {
	for lanes, minutes := range map[int]int{10: 10, 100: 1} {
		if lanes > 10 && testing.Short() {
			continue // ten seconds of processor time
		}
		p := pooled{servers: map[string]*gates.Server{}, run: machine.RunConfig{Concurrency: 64 * lanes, Pools: []machine.PoolConfig{{Name: "p"}}}}
		for i := range lanes {
			name := fmt.Sprintf("lane%d", i)
			p.servers[name] = rpm(60)
			p.run.Pools[0].Lanes = append(p.run.Pools[0].Lanes, name)
		}
		items := 60 * minutes * lanes
		in, most := p.runs(t, items), time.Duration(1.05*float64(minutes)*float64(time.Minute))
		t.Logf("%d lanes: %d items in %v, %d refused", lanes, items, in, p.refusals)
		if in > most || p.refusals > max(lanes, items/100) { // a lane learns by one refusal that it has a limit
			t.Errorf("%d lanes: %d items took %v, want %v at most; %d refused, want %d at most", lanes, items, in, most, p.refusals, max(lanes, items/100))
		}
	}
}

// A lane of calls of 20 seconds does not hold up one of a tenth of a second. With fewer places
// than both could use, neither has under half of its share while it could send.
func TestPoolOfSlowAndFastLanes(t *testing.T) {
	for _, c := range []struct {
		window, places, items int
		most                  time.Duration
	}{{64, 128, 20_000, time.Minute}, {0, 64, 20_000, 2 * time.Minute}} {
		p := pooled{
			servers: map[string]*gates.Server{"slow": unlimited(20 * time.Second), "fast": unlimited(100 * time.Millisecond)},
			lane:    machine.LaneConfig{Law: limiter.NoLaw, Window: c.window},
			run:     machine.RunConfig{Concurrency: c.places, Pools: []machine.PoolConfig{{Name: "p", Lanes: []string{"slow", "fast"}}}},
		}
		least := map[string]int{"slow": c.places, "fast": c.places}
		p.watch = func(_ time.Duration, inFlight map[string]int) {
			if len(p.calls["slow"])+len(p.calls["fast"]) < c.items { // else too few are left
				for lane := range least {
					least[lane] = min(least[lane], inFlight[lane])
				}
			}
		}
		in := p.runs(t, c.items)
		t.Logf("window %d, %d places: %v, at least %v in flight", c.window, c.places, in, least)
		if in > c.most || least["slow"] < c.places/4 || least["fast"] < c.places/4 {
			t.Errorf("window %d, %d places: took %v, want %v at most; at least %v in flight", c.window, c.places, in, c.most, least)
		}
	}
}

// Two lanes of 600 requests a minute bring what both allow, though the calls of one take 20 seconds
// and those of the other one. If they have few places for both, the long calls hold up no short one.
func TestPoolOfTwoLatencies(t *testing.T) {
	const items = 2000
	for places, most := range map[int]time.Duration{512: 130 * time.Second, 64: 181 * time.Second} { // 181: with half of the places slow
		p := pooled{
			servers: map[string]*gates.Server{"slow": rpmIn(600, 20*time.Second), "fast": rpm(600)},
			lane:    machine.LaneConfig{Window: 256},
			run:     machine.RunConfig{Concurrency: places, Pools: []machine.PoolConfig{{Name: "p", Lanes: []string{"slow", "fast"}}}},
		}
		in := p.runs(t, items)
		fast := p.calls["fast"]
		t.Logf("%d places: %d items in %v, %d refused; %d calls of the fast lane until %v", places, items, in, p.refusals, len(fast), fast[len(fast)-1])
		if in > most || p.refusals > items/100 {
			t.Errorf("%d places: took %v, want %v at most; %d refused", places, in, most, p.refusals)
		}
		if could := 10 * fast[len(fast)-1].Seconds(); float64(len(fast)) < 0.95*could {
			t.Errorf("%d places: the fast lane made %d calls, and could make %.0f", places, len(fast), could)
		}
	}
}

// Pools share the places of their run likewise: one of a slow model does not hold up that of a
// fast one.
func TestPoolsOfSlowAndFastModels(t *testing.T) {
	p := pooled{
		servers: map[string]*gates.Server{"slow": unlimited(20 * time.Second), "fast": unlimited(100 * time.Millisecond)},
		lane:    machine.LaneConfig{Law: limiter.NoLaw},
		run:     machine.RunConfig{Concurrency: 64, Pools: []machine.PoolConfig{{Name: "slow", Lanes: []string{"slow"}}, {Name: "fast", Lanes: []string{"fast"}}}},
		poolOf: func(item int) string {
			switch {
			case item < 8: // pools that are done soon have no share of the places
				return fmt.Sprintf("done%d", item)
			case item%50 == 0:
				return "slow"
			default:
				return "fast"
			}
		},
	}
	for i := range 8 {
		p.servers[fmt.Sprintf("done%d", i)] = unlimited(time.Second)
	}
	in := p.runs(t, 20_000) // 400 slow calls take 7 to 13 rounds of 20 s; 19,600 fast ones 61 s on 32 places
	last := slices.Max(p.calls["fast"])
	t.Logf("took %v, the last fast call left at %v", in, last)
	if last > 63*time.Second || in > 200*time.Second {
		t.Errorf("took %v, want 200s at most; the last fast call left at %v, want 63s at most", in, last)
	}
}

// An outage that is shorter than the pool's patience sends nothing to the next tier. One that
// is longer does once the patience is over, until a second after the better lane flows.
func TestPoolThatPrefers(t *testing.T) {
	const items, from = 6000, 100 * time.Second
	prefers := func(outage time.Duration) (p *pooled, in time.Duration) {
		p = &pooled{
			servers: map[string]*gates.Server{"good": rpm(600, gates.Outage{From: from, For: outage}), "dear": rpm(600)},
			run: machine.RunConfig{Pools: []machine.PoolConfig{{
				Name: "p", Lanes: []string{"good", "dear"}, Tiers: []int{0, 1}, After: time.Minute,
			}}},
		}
		return p, p.runs(t, items)
	}
	_, well := prefers(0)
	for _, outage := range []time.Duration{30 * time.Second, 5 * time.Minute} {
		p, in := prefers(outage)
		dear := p.calls["dear"]
		t.Logf("outage of %v: took %v, and %v without; %d calls on the next tier", outage, in, well, len(dear))
		if most := time.Duration(1.02 * float64(well+outage)); in > most {
			t.Errorf("outage of %v: took %v, want %v at most", outage, in, most)
		}
		if outage < time.Minute {
			if len(dear) > 0 {
				t.Errorf("outage of %v: %d calls on the next tier", outage, len(dear))
			}
			continue
		}
		if len(dear) == 0 || len(p.flows["good"]) == 0 {
			t.Fatalf("outage of %v: %d calls on the next tier; the better lane flows at %v", outage, len(dear), p.flows["good"])
		}
		first, last, flows := dear[0]-from, dear[len(dear)-1], p.flows["good"][len(p.flows["good"])-1]
		t.Logf("the first at %v of the outage, the last at %v; the better lane flows at %v", first, last, flows)
		if first < 60*time.Second || first > 61*time.Second || last > flows+time.Second {
			t.Errorf("outage of %v: calls on the next tier from %v of it on, and until %v; the better lane flows at %v", outage, first, last, flows)
		}
	}
}

// A pool that spills uses the next tier once its head would wait longer than that for the better
// one, and only then: for the part that the better one cannot do in time.
func TestPoolThatSpills(t *testing.T) {
	const spill = 10 * time.Second
	p := pooled{
		servers: map[string]*gates.Server{"good": unlimited(time.Minute), "dear": unlimited(time.Second)},
		lane:    machine.LaneConfig{Law: limiter.NoLaw, Window: 8},
		run: machine.RunConfig{Pools: []machine.PoolConfig{{
			Name: "p", Lanes: []string{"good", "dear"}, Tiers: []int{0, 1}, After: time.Hour, Spill: spill,
		}}},
	}
	in := p.runs(t, 100)
	dear := p.calls["dear"]
	if len(dear) == 0 {
		t.Fatalf("took %v, and nothing spilled", in)
	}
	t.Logf("took %v; %d calls spilled, the first at %v", in, len(dear), dear[0])
	if dear[0] < spill || dear[0] > spill+100*time.Millisecond {
		t.Errorf("the first call spilled at %v, want %v", dear[0], spill)
	}
	for i := 1; i < len(dear); i++ {
		if dear[i]-dear[i-1] < spill {
			t.Errorf("calls spilled at %v and %v: the second had not waited for %v", dear[i-1], dear[i], spill)
		}
	}
}
