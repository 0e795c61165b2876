package keeper

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Rivals: other ways to share a limit, in the same lab.

// nobody is asked by those who share by themselves.
type nobody struct{}

func (nobody) begin()            {}
func (nobody) hear(*worker, any) {}
func alone(*lab) center          { return nobody{} }

// static has each worker keep to its part of the limit.
func static(p plan) plan {
	p.rival = alone
	p.lane = func(l *lab, _, _ string) machine.LaneConfig {
		return machine.LaneConfig{Limits: limiter.Limits{TPM: 60 * l.plan.rate / float64(l.plan.workers)}}
	}
	return p
}

// ownLaw has each worker follow the core's model of the limit, as if it were alone.
func ownLaw(p plan) plan {
	p.rival = alone
	p.lane = func(l *lab, _, _ string) machine.LaneConfig { return l.plan.known() }
	return p
}

// ownRate has each worker raise and cut a rate of its own.
func ownRate(p plan) plan {
	p.rival = alone
	p.lane = func(*lab, string, string) machine.LaneConfig { return machine.LaneConfig{Law: limiter.Plain} }
	return p
}

// rateOnly has the next keeper know the rate of the one before, and nothing else.
func rateOnly(p plan) plan {
	p.hand = func(k *Keeper, now time.Time) map[string]machine.LaneMemory {
		saved := k.Save(now)
		for name, m := range saved {
			law := limiter.Memory{Version: m.Law.Version, Law: m.Law.Law, At: m.Law.At, Pace: m.Law.Pace}
			law.Limits = []limiter.LimitMemory{{On: "requests", Source: "learned", Refill: m.Law.Answered, Capacity: 60 * m.Law.Answered}}
			saved[name] = machine.LaneMemory{Version: m.Version, Law: law}
		}
		return saved
	}
	return p
}

// central has each call ask by itself, and be let go by itself: the core's machine, and a way
// to it for each call. Its calls all cost the same: a permit is for one call, and where the
// first in line waited for its own, those that came earlier would grow old.
func central(p plan) plan {
	p.spread, p.heavy = 0, 0
	var c *counter
	p.rival = func(l *lab) center {
		c = &counter{l: l}
		return c
	}
	p.lane = func(l *lab, worker, _ string) machine.LaneConfig {
		return machine.LaneConfig{Maker: &singly{l: l, c: c, w: l.named(worker), worker: worker}}
	}
	return p
}

// A request is one call that asks.
type request struct {
	worker string
	number uint64
	cost   limiter.Cost
	at     time.Duration // of a worker's: when it asked; of the counter's: when it was let go
	item   machine.Item
	grant  machine.Grant
	w      *worker
	life   int // of the counter
}

// An ending is what became of it.
type ending struct {
	number uint64
	at     time.Duration // it left
	cost   limiter.Cost
	o      machine.Outcome
}

// A counter is where calls ask one by one. It dies as a keeper does.
type counter struct {
	l           *lab
	m           *machine.Machine
	clock       clock
	lines       map[string][]*request // of each worker
	turns       []string
	out         map[string]map[uint64]*request
	outstanding int
	saved       map[string]machine.LaneMemory
	lives       int
	timer       int
}

func (c *counter) begin() {
	c.open()
	c.l.every(500*time.Millisecond, func() {
		if c.m == nil {
			return
		}
		c.saved = c.m.SaveLanes(c.clock.at(c.l.Age()))
		for _, out := range c.out {
			for number, r := range out {
				if c.l.Age()-r.at > 2*c.l.plan.latency+time.Second { // nothing will be heard of it
					delete(out, number)
					c.m.Step(c.clock.at(c.l.Age()), machine.Settled(r.grant, machine.Outcome{}))
				}
			}
		}
	})
	if c.l.plan.storm {
		c.l.every(c.l.plan.kills, func() {
			c.m = nil
			c.l.In(3030*time.Millisecond-c.l.span(0, 750*time.Millisecond), c.open)
		})
	}
}

func (c *counter) open() {
	c.lives++
	memory := map[string]machine.LaneMemory{}
	for name, m := range c.saved {
		memory[name] = m.Empty()
	}
	c.clock, c.lines, c.turns, c.out, c.outstanding = c.l.clock(50*time.Millisecond), map[string][]*request{}, nil, map[string]map[uint64]*request{}, 0
	c.m = machine.New(machine.Config{Lanes: map[string]machine.LaneConfig{"org": c.l.plan.known()}, Memory: memory, Seed: uint64(c.lives)})
	c.m.Step(c.clock.at(c.l.Age()), machine.RunOpened(theRun, machine.RunConfig{Concurrency: MaxInFlight}))
}

func (c *counter) hear(w *worker, message any) {
	if c.m == nil {
		return
	}
	now := c.clock.at(c.l.Age())
	switch x := message.(type) {
	case request:
		if len(c.lines[x.worker]) == 0 {
			c.turns = append(c.turns, x.worker)
		}
		x.w = w
		line := append(c.lines[x.worker], &x) // words overtake each other
		slices.SortFunc(line, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
		c.lines[x.worker] = line
	case ending:
		if r := c.out[w.name][x.number]; r != nil {
			delete(c.out[w.name], x.number)
			asOfGrant(x.o.Sightings, x.at-r.at)
			c.m.Step(now, machine.Settled(r.grant, x.o))
		} else {
			c.m.Step(now, machine.Overheard("org", now.Add(x.at-c.l.Age()), x.cost, x.o))
		}
	}
	c.decide()
}

func (c *counter) decide() {
	if c.m == nil {
		return
	}
	now := c.clock.at(c.l.Age())
	for c.outstanding < MaxWaiting && len(c.turns) > 0 {
		name := c.turns[0]
		c.turns = c.turns[1:]
		line := c.lines[name]
		r := line[0]
		if c.lines[name] = line[1:]; len(line) > 1 {
			c.turns = append(c.turns, name)
		}
		r.item = machine.Item{Pool: "org", Cost: r.cost, Payload: r}
		c.outstanding++
		c.m.Step(now, machine.Offered(theRun, []*machine.Item{&r.item}))
	}
	ready := c.m.Ready(now)
	for _, g := range append([]machine.Grant(nil), ready.Grants...) {
		c.outstanding--
		r := g.Item.Payload.(*request)
		if !r.w.alive || r.w.name != r.worker || r.at < r.w.cut { // its connection was closed
			c.m.Step(now, machine.Settled(g, machine.Outcome{Unsent: true}))
			continue
		}
		r.grant, r.at = g, c.l.Age()
		if c.out[r.worker] == nil {
			c.out[r.worker] = map[uint64]*request{}
		}
		c.out[r.worker][r.number] = r
		c.l.post(func() {
			if r.w.name == r.worker {
				r.w.tell("org", "", letGo{r.number, r.cost})
			}
		})
	}
	if len(ready.Grants) > 0 && len(c.turns) > 0 {
		c.decide()
		return
	}
	if !ready.WakeAt.IsZero() {
		c.timer++
		timer := c.timer
		c.l.In(c.clock.until(c.l.Age(), ready.WakeAt), func() {
			if c.timer == timer {
				c.decide()
			}
		})
	}
}

// A letGo lets one call go.
type letGo struct {
	number uint64
	cost   limiter.Cost
}

// singly is the law of a worker whose calls ask one by one.
type singly struct {
	limiter.Unlimited
	l       *lab
	c       *counter
	w       *worker
	worker  string
	number  uint64
	pending map[uint64]request
	hand    []letGo
	out     map[uint64]ending
	ended   []any
}

func (s *singly) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	s.pending, s.out = map[uint64]request{}, map[uint64]ending{}
	return s
}

func (s *singly) find(c limiter.Cost) int {
	for i, g := range s.hand {
		if g.cost == c {
			return i
		}
	}
	return -1
}

func (s *singly) Wait(_ time.Time, c limiter.Cost) (time.Duration, limiter.Bound) {
	if s.find(c) >= 0 {
		return 0, limiter.BoundNone
	}
	return limiter.UntilNotified, limiter.BoundRequests
}

func (s *singly) Sent(_ time.Time, c limiter.Cost, _ int) limiter.Ticket {
	i := s.find(c)
	g := s.hand[i]
	s.hand = append(s.hand[:i], s.hand[i+1:]...)
	s.out[g.number] = ending{number: g.number, at: s.l.Age(), cost: c}
	return limiter.Ticket{Number: g.number}
}

func (s *singly) Ended(_ time.Time, k limiter.Ticket, o machine.Outcome) {
	e := s.out[k.Number]
	delete(s.out, k.Number)
	e.o = o
	s.ended = append(s.ended, e)
}

func (s *singly) Hear(_ time.Time, message any) limiter.Reply {
	g := message.(letGo)
	if _, asked := s.pending[g.number]; asked {
		delete(s.pending, g.number)
		s.hand = append(s.hand, g)
	}
	return limiter.Reply{}
}

func (s *singly) Say(now time.Time, up limiter.Upcoming) (any, time.Time) {
	words := s.ended
	s.ended = nil
	for number, r := range s.pending { // the counter has died since, or was not reached, or it was lost
		if r.life != s.c.lives || r.at < s.w.cut || s.l.Age()-r.at > 2*time.Minute {
			delete(s.pending, number)
		}
	}
	asked, places := map[limiter.Cost]int{}, up.Free
	for _, r := range s.pending {
		asked[r.cost]++
	}
	for _, g := range s.hand {
		asked[g.cost]++
	}
	for c := range up.Costs {
		if places--; places < 0 {
			break
		}
		if asked[c]--; asked[c] >= 0 {
			continue
		}
		s.number++
		r := request{worker: s.worker, number: s.number, cost: c, at: s.l.Age(), life: s.c.lives}
		s.pending[r.number] = r
		words = append(words, r)
	}
	if len(words) == 0 {
		return nil, now.Add(200 * time.Millisecond)
	}
	return words, now.Add(200 * time.Millisecond)
}
