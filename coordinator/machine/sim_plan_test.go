package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A trouble is one of the things that a world may do to its machine. A failing
// world is tried again without each of them in turn, to find the few that matter.
type trouble uint64

const (
	withdrawals trouble = 1 << iota
	pauses
	drains
	newLimits
	resets
	clockSteps
	duplicates // ends are reported twice
	storms     // of 429
	outages    // 500, 503, or no answer
	exhaustion
	randomErrors
	itemTimeouts
	evictions
	windows
	cancels
	estimates    // tokens, and the real ones differ
	chances      // refusals that no pace brings about, and a cap on calls in flight
	unsents      // calls that never reach the wire
	caps         // fewer lanes may be known than there are
	headers      // that show what a server's buckets hold, at times wrongly
	locals       // lanes of servers of one's own, which queue
	tokens       // buckets of tokens
	slowness     // refusals that take as long as answers
	riddles      // refusals that may mean the day, or mind the growth; calls that ran out of time
	silences     // of servers that are not there
	charges      // by rules of the lanes' own
	days         // limits by the day, which are used up
	leaders      // of remote lanes
	overhearings // ends of another machine's calls
	poisons      // items that always fail
	faults       // laws that panic
	ceilings     // few calls of all runs together
	budgets      // of money, and calls that cost more than reserved
	patience     // tiers of several lanes, with patience, or from which heads spill
	accounts     // whose lanes stop together
	weighing     // of the lanes of a pool
	newCeilings  // of runs that go on
	newBudgets   // likewise
	troubles     = iota
)

// A plan is what a seed makes a world of: who offers what to which lanes.
type plan struct {
	seed    uint64
	maxItem int     // per run; less while a failure is narrowed down
	without trouble // left out while a failure is narrowed down
	rng     *rand.Rand

	machine Config
	lanes   []lanePlan
	runs    []runPlan
	poison  func(seq uint64) int // how an item is poison; 0: it is not
	strict  bool                 // few items that are invalid alike stop a lane
	closely bool                 // the book looks at all after each step: a failure is narrowed down
}

type lanePlan struct {
	name    string
	defined bool
	config  LaneConfig
	server  server
	page    *remotePage // of a lane that is remote, or may become so; nil: it never is
}

type runPlan struct {
	config RunConfig
	items  int
	names  []string // pools that its items go to
}

func newPlan(seed uint64, maxItem int, without trouble) *plan {
	p := &plan{seed: seed, maxItem: maxItem, without: without, rng: rand.New(rand.NewPCG(seed, 1))}
	p.machine = Config{Seed: seed, Lane: p.laneConfig()}
	if p.may(evictions, 0.5) {
		p.machine.IdleTTL = p.span(time.Second, 60*time.Second)
	}
	for i := range 1 + p.rng.IntN(4) {
		p.lanes = append(p.lanes, lanePlan{
			name: fmt.Sprintf("l%d", i), defined: p.chance(0.6), config: p.laneConfig(), server: p.server(),
		})
	}
	for range 1 + p.rng.IntN(3) {
		p.runs = append(p.runs, p.run())
	}
	if p.may(caps, 0.2) {
		p.machine.MaxLanes = 1 + p.rng.IntN(3)
	}
	p.prioritize()
	p.machine.LongWait = longWaitOf(seed)
	p.bound()
	p.inTiers()
	p.inHomes()
	p.inWeights()
	p.onAccounts()
	p.fromSilence()
	p.ownRules()
	p.fromOutside()
	p.fromPoison()
	p.fromMoney()
	p.wider()
	return p
}

// wider lets the concurrency of some runs rise. It draws from a stream of its own.
func (p *plan) wider() {
	rng := rand.New(rand.NewPCG(p.seed, 22))
	for i := range p.runs {
		c := &p.runs[i].config
		c.MostConcurrency = c.Concurrency + rng.IntN(2)*rng.IntN(40)
	}
}

// prioritize draws from a stream of its own, so that worlds that are known by their seed
// stay what they were but for the order of grants.
func (p *plan) prioritize() {
	rng := rand.New(rand.NewPCG(p.seed, 2))
	for i := range p.runs {
		p.runs[i].config.Priority = max(0, rng.IntN(6)-2) // as often 0 or 1 as more
	}
}

// bound draws from a stream of its own, likewise.
func (p *plan) bound() {
	rng := rand.New(rand.NewPCG(p.seed, 13))
	if n := 1 + rng.IntN(20); rng.IntN(4) == 0 && p.without&ceilings == 0 {
		p.machine.Concurrency = n
	}
}

// inTiers draws from a stream of its own, likewise: some pools with tiers have patience.
func (p *plan) inTiers() {
	rng := rand.New(rand.NewPCG(p.seed, 31))
	for i := range p.runs {
		for k := range p.runs[i].config.Pools {
			c := &p.runs[i].config.Pools[k]
			after, spill, joins := time.Duration(rng.Int64N(int64(time.Minute))), time.Duration(rng.Int64N(int64(20*time.Second))), rng.IntN(len(c.Lanes))
			kind := rng.IntN(4)
			if c.Tiers == nil || kind == 0 || p.without&patience != 0 {
				continue
			}
			if c.After = after; kind == 1 {
				c.Spill = spill
			}
			for n := joins; n > 0 && n < len(c.Tiers); n++ { // that lane is of the tier before its own
				c.Tiers[n]--
			}
		}
	}
}

// inHomes draws from a stream of its own, likewise: some pools are those of a home, which other lanes
// help out after a patience, as sticky pools have one for each lane.
func (p *plan) inHomes() {
	rng := rand.New(rand.NewPCG(p.seed, 34))
	for i := range p.runs {
		for k := range p.runs[i].config.Pools {
			c := &p.runs[i].config.Pools[k]
			patient := time.Second + time.Duration(rng.Int64N(int64(20*time.Second)))
			if rng.IntN(4) > 0 || len(c.Lanes) < 2 || p.without&patience != 0 {
				continue
			}
			c.Tiers, c.After, c.Spill = slices.Repeat([]int{1}, len(c.Lanes)), patient, patient
			c.Tiers[0] = 0
		}
	}
}

// inWeights draws from a stream of its own, likewise: the lanes of some pools have weights.
func (p *plan) inWeights() {
	rng := rand.New(rand.NewPCG(p.seed, 33))
	for i := range p.runs {
		for k := range p.runs[i].config.Pools {
			c := &p.runs[i].config.Pools[k]
			if rng.IntN(3) > 0 || p.without&weighing != 0 {
				continue
			}
			for range c.Lanes {
				c.Weights = append(c.Weights, 1+rng.IntN(rng.IntN(MaxWeight)+1))
			}
		}
	}
}

// onAccounts draws from a stream of its own, likewise: some lanes share an account.
func (p *plan) onAccounts() {
	rng := rand.New(rand.NewPCG(p.seed, 32))
	share := rng.IntN(2) == 0 && p.without&accounts == 0
	for i := range p.lanes {
		if name := []string{"", "one", "one", "other"}[rng.IntN(4)]; share {
			p.lanes[i].config.Account = name
		}
	}
}

// longWaitOf is from which wait on a world hears of it. It is drawn apart: what is said
// of waits is no part of what happens.
func longWaitOf(seed uint64) time.Duration {
	rng := rand.New(rand.NewPCG(seed, 4))
	if rng.IntN(4) == 0 {
		return DefaultLongWait
	}
	return time.Second + time.Duration(rng.Int64N(int64(time.Minute)))
}

func (p *plan) chance(share float64) bool { return p.rng.Float64() < share }

// may draws in any case, so that leaving one trouble out changes no other.
func (p *plan) may(t trouble, share float64) bool { return p.chance(share) && p.without&t == 0 }

func (p *plan) span(from, to time.Duration) time.Duration {
	return from + time.Duration(p.rng.Float64()*float64(to-from))
}

func (p *plan) oneOf(xs ...float64) float64 { return xs[p.rng.IntN(len(xs))] }

func (p *plan) laneConfig() LaneConfig {
	c := LaneConfig{Law: limiter.LawName(p.rng.IntN(2)), Cooldown: limiter.CooldownConfig{Base: p.span(50*time.Millisecond, 2*time.Second)}}
	if p.may(locals, 0.2) && c.Law == limiter.Model {
		c.Local, c.Target = true, time.Duration(p.oneOf(0, 1, 3, 10))*time.Second
	}
	if p.chance(0.5) {
		c.Limits = p.limits()
	}
	if p.may(windows, 0.3) {
		c.Window = 1 + p.rng.IntN(8)
	}
	if p.chance(0.2) {
		c.Ramp = p.ramp()
	}
	if p.chance(0.3) {
		c.Rate = limiter.RateConfig{Initial: p.oneOf(0, 1, 30), Ceiling: p.oneOf(0, 50)}
		c.Target = time.Duration(p.oneOf(0, 0, 1)) * time.Second
	}
	if p.chance(0.5) {
		c.Breaker = limiter.BreakerConfig{Consecutive: 1 + p.rng.IntN(6), OpenFor: p.span(200*time.Millisecond, 5*time.Second), Successes: 1 + p.rng.IntN(3)}
	}
	if p.chance(0.3) {
		c.Errors = limiter.ErrorWindowConfig{MinSamples: 3, Hold: p.span(time.Second, 20*time.Second), Window: p.span(time.Second, 30*time.Second)}
	}
	return c
}

func (p *plan) ramp() limiter.RampConfig {
	return limiter.RampConfig{Initial: p.oneOf(0, 1, 10), Target: p.oneOf(0, 5, 100), Duration: p.span(time.Millisecond, 20*time.Second)}
}

func (p *plan) limits() (l limiter.Limits) {
	if p.chance(0.8) {
		l.RPM = p.oneOf(20, 60, 600, 6000, 77.7)
	}
	if p.may(estimates, 0.4) {
		l.TPM = p.oneOf(6000, 60_000, 1_000_000)
	}
	if p.may(estimates, 0.2) {
		l.OutputTPM = p.oneOf(6000, 100_000)
	}
	l.Burst = time.Duration(p.oneOf(0, 0, 1, 10, 60)) * time.Second
	return l
}

func (p *plan) run() runPlan {
	r := runPlan{config: RunConfig{Concurrency: 1 + p.rng.IntN(40)}}
	if p.may(itemTimeouts, 0.25) {
		r.config.ItemTimeout = p.span(100*time.Millisecond, 60*time.Second)
	}
	for i := range p.rng.IntN(3) {
		r.config.Pools = append(r.config.Pools, p.pool(fmt.Sprintf("p%d", i)))
	}
	for _, c := range r.config.Pools {
		r.names = append(r.names, c.Name)
	}
	if len(r.names) == 0 || p.chance(0.5) {
		r.names = append(r.names, p.lanes[p.rng.IntN(len(p.lanes))].name)
	}
	most := 30
	if p.chance(0.3) {
		most = 300
	}
	r.items = min(p.maxItem, 1+p.rng.IntN(most))
	return r
}

func (p *plan) pool(name string) PoolConfig {
	c, apart := PoolConfig{Name: name}, p.chance(0.5)
	for _, i := range p.rng.Perm(len(p.lanes))[:1+p.rng.IntN(len(p.lanes))] {
		c.Lanes = append(c.Lanes, p.lanes[i].name)
	}
	if apart {
		c.Tiers = each(len(c.Lanes))
	}
	return c
}

// each has each of n lanes be a tier of its own.
func each(n int) (tiers []int) {
	for i := range n {
		tiers = append(tiers, i)
	}
	return tiers
}
