package keeper

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// Bounds of a keeper; each is a choice.
const (
	// MaxWaiting is how many permits of one limit wait in the machine at most. What waits there
	// is out of the hands of turns, and may be a dead worker's; fewer wait where few are granted.
	MaxWaiting = 64
	// MaxInFlight is how many permits of one limit are out at most: 15,000 calls a second of a
	// minute each, at some 500 bytes.
	MaxInFlight = 1 << 20
	// MaxLimits is how many limits a keeper knows: an organisation has as many as keys and models.
	MaxLimits = 4096
	// MaxPeers is how many lanes of workers it knows: a thousand workers with 64 jobs each. Who
	// asks beyond that is not heard.
	MaxPeers = 1 << 16
)

// Errors about asks that are not heard.
var (
	// ErrOutbid: the worker has heard a later keeper. This one gives nothing any more.
	ErrOutbid = errors.New("keeper: there is a later one")
	// ErrTooMany: there is no room for one more worker or limit.
	ErrTooMany = errors.New("keeper: too many")
)

// Config is what a keeper begins with. Limits that nobody names are found out as the core
// finds out a lane's.
type Config struct {
	Epoch  uint64                        // of this keeper: higher than that of any before it; from 1
	Seed   uint64                        // of the machine's jitter: same seed, same waits
	Limits map[string]machine.LaneConfig // what is known of limits
	Memory map[string]machine.LaneMemory // what the keeper before this one knew; of what it had in hand nothing is taken
	Stops  map[string]*permit.Cause      // the limits that it had stopped; they stay so until [Keeper.Reset]
}

// A Keeper gives permits. It is a value in the care of one owner: no method may be called
// while another runs. Create one with [New].
type Keeper struct {
	epoch   uint64
	machine *machine.Machine
	limits  map[string]*limit
	order   []*limit // the same, in an order that does not depend on chance
	stops   map[string]*permit.Cause
	heard   map[string]bool // limits under which an earlier keeper was answered
	weights map[string]float64
	peers   map[peerName]*peer
	line    []*peer   // the same, in the order in which they came
	outbox  []*peer   // those for whom there is something
	boxAt   time.Time // when the first of them may be given it
	granted queue     // permits by when they were granted
	number  permit.Number

	began   time.Time // the first call
	now     time.Time // of the latest call: time never goes back in here
	looked  time.Time // the latest decision
	saw     time.Time // when it was looked at what binds limits
	swept   time.Time // when silent peers were looked for
	wake    time.Time // when time alone changes something in the machine; zero: never
	stirred bool      // something was heard since the latest decision
	urgent  bool      // and it must not wait for the next
	outbid  uint64    // the highest epoch of a later keeper that a worker has heard; 0: none
}

// Out is everything that follows from what a keeper was told: to be sent as it is.
type Out struct {
	Gives  []permit.Give
	Cools  []permit.Cool
	Outbid uint64    // the epoch of a later keeper; 0: there is none. This one must end
	WakeAt time.Time // when to ask again if nothing is heard; zero: only then
}

// farAway is for how long the machine remembers a limit that nobody uses: the keeper's life,
// as limits are few and what is known of them is dear.
const farAway = time.Duration(math.MaxInt64)

// New is a keeper that knows no worker yet.
func New(c Config) *Keeper {
	k := &Keeper{
		epoch: c.Epoch, limits: map[string]*limit{}, stops: maps.Clone(c.Stops), heard: map[string]bool{},
		weights: map[string]float64{}, peers: map[peerName]*peer{},
	}
	memory := map[string]machine.LaneMemory{}
	for name, m := range c.Memory {
		memory[name] = m.Empty()
		k.heard[name] = m.Law.Answered > 0 || m.Law.Latency > 0
	}
	k.machine = machine.New(machine.Config{
		Lanes: c.Limits, Memory: memory, Seed: c.Seed, IdleTTL: farAway, MaxLanes: MaxLimits, LongWait: -1,
	})
	return k
}

// Limit says what a limit is like, or has become; see [machine.LaneDefined].
func (k *Keeper) Limit(now time.Time, name string, c machine.LaneConfig) {
	k.machine.Step(k.tick(now), machine.LaneDefined(name, c))
	k.stirred = true
}

// Job says what share of the limits a job has beside others: twice the weight is twice as
// much. What is not over 0 is 1, as is the weight of a job that nobody named.
func (k *Keeper) Job(now time.Time, name string, weight float64) {
	k.tick(now)
	if !(weight > 0) || math.IsInf(weight, 1) {
		weight = 1
	}
	k.weights[name] = weight
	for _, l := range k.order {
		if t := l.teams[name]; t != nil {
			t.reweigh(weight)
		}
	}
}

// JobGone says that a job is over: what its workers wanted is forgotten, and they are given
// nothing but what they ask for from now on. What they have still counts.
func (k *Keeper) JobGone(now time.Time, name string) {
	now = k.tick(now)
	delete(k.weights, name)
	for _, p := range k.line {
		if p.name.job == name {
			k.want(now, p, nil, 0)
		}
	}
}

// Reset says that a person vouches for a limit: it flows again, with nothing held against it.
func (k *Keeper) Reset(now time.Time, name string) {
	now = k.tick(now)
	if k.stops[name] != nil {
		delete(k.stops, name)
		k.Remind(now, name) // the keeper before has stopped its workers, and they ask for nothing more
	}
	if l := k.limits[name]; l != nil {
		l.alike = alikeRow{}
	}
	k.machine.Step(now, machine.LaneReset(name))
	k.stirred, k.urgent = true, true
}

// Remind says to all workers how a limit stands. Those that an earlier keeper has stopped go on, unless it has stopped here, too.
func (k *Keeper) Remind(now time.Time, name string) {
	l, err := k.limitNamed(k.tick(now), name)
	if err != nil {
		return // a worker that asks is told so
	}
	l.toSay, k.stirred, k.urgent = true, true, true
}

// Heard absorbs an ask. The same ask again, and one that was overtaken by a later one, change
// nothing. The error says why it was not heard: it is permit.ErrVersion, permit.ErrMessage,
// [ErrOutbid] or [ErrTooMany].
func (k *Keeper) Heard(now time.Time, a permit.Ask) error {
	now = k.tick(now)
	if err := a.Validate(); err != nil {
		return err
	}
	if a.Epoch > k.epoch {
		k.outbid = max(k.outbid, a.Epoch)
		return fmt.Errorf("%w: %d, and this is %d", ErrOutbid, a.Epoch, k.epoch)
	}
	p, err := k.peerOf(now, &a)
	if err != nil || a.Seq <= p.seq {
		return err
	}
	p.seq, p.heard = a.Seq, now
	k.stirred = true
	k.reports(now, p, &a)
	k.arrived(now, p, &a)
	k.want(now, p, a.Wants, a.More)
	p.limit.remind(now)
	return nil
}

// decideEvery is how often a keeper decides at most. The law is asked at the moments that it
// names: it saves up calls, and not what they cost, so that of what it saves up while nobody
// looks a cheap call would be worth as much as a dear one. From a thousand calls a second on it
// is looked at less often than that, where a call more or less is little.
const decideEvery = time.Millisecond

// Ready decides: whatever time or asks have made possible is given. What was heard waits for
// permit.GiveEvery, so that many asks are one decision, but for a refusal.
func (k *Keeper) Ready(now time.Time) (out Out) {
	now = k.tick(now)
	if k.outbid > 0 {
		return Out{Outbid: k.outbid}
	}
	if at := k.dueAt(); !at.IsZero() && !at.After(now) {
		k.looked, k.stirred, k.urgent = now, false, false
		k.forget(now)
		k.grant(now)
		out.Gives = k.give(now)
		out.Cools = k.cool(now)
	}
	out.WakeAt = k.dueAt()
	return out
}

// dueAt is when the next decision is; zero: when something is heard.
func (k *Keeper) dueAt() time.Time {
	if k.urgent {
		return k.now // and not when it looked: it never may have
	}
	at := earliest(k.wake, k.granted.forgetAt(), k.sweepAt())
	if !at.IsZero() {
		at = latest(at, k.looked.Add(decideEvery))
	}
	if k.stirred {
		at = earliest(at, k.looked.Add(permit.GiveEvery))
	}
	if len(k.outbox) > 0 {
		at = earliest(at, latest(k.boxAt, k.looked.Add(decideEvery)))
	}
	return at
}

// earliest is the first of some moments; zero ones are none.
func earliest(at ...time.Time) (first time.Time) {
	for _, t := range at {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Save is what is worth knowing for the keeper after this one: [Config].Memory.
func (k *Keeper) Save(now time.Time) map[string]machine.LaneMemory {
	return k.machine.SaveLanes(k.tick(now))
}

// Stops are the limits that were stopped, and why: [Config].Stops of the keeper after this one.
func (k *Keeper) Stops() map[string]*permit.Cause {
	stops := maps.Clone(k.stops)
	for _, l := range k.order {
		if l.stopped != nil {
			if stops == nil {
				stops = map[string]*permit.Cause{}
			}
			stops[l.name] = l.stopped
		}
	}
	return stops
}

// tick keeps time from going back, as the machine's does.
func (k *Keeper) tick(now time.Time) time.Time {
	if k.began.IsZero() {
		k.began = now
	}
	if now.After(k.now) {
		k.now = now
	}
	return k.now
}

// give empties the outbox, but for those who were given something a moment ago.
func (k *Keeper) give(now time.Time) (gives []permit.Give) {
	kept := k.outbox[:0]
	k.boxAt = time.Time{}
	for _, p := range k.outbox {
		if at := p.giveAt(); at.After(now) {
			kept = append(kept, p)
			k.boxAt = earliest(k.boxAt, at)
			continue
		}
		gives = append(gives, p.give(now, k.epoch))
		if len(p.outgoing) > 0 { // more than one give may bring
			kept = append(kept, p)
			k.boxAt = earliest(k.boxAt, p.giveAt())
			continue
		}
		p.inOutbox = false
	}
	clear(k.outbox[len(kept):])
	k.outbox = kept
	return gives
}

// post has a peer be given what there is for it.
func (k *Keeper) post(p *peer) {
	if !p.inOutbox {
		p.inOutbox = true
		k.outbox = append(k.outbox, p)
	}
	k.boxAt = earliest(k.boxAt, p.giveAt())
}

// cool says the waves that have begun, to all.
func (k *Keeper) cool(now time.Time) (cools []permit.Cool) {
	for _, l := range k.order {
		if l.toSay {
			l.toSay, l.saidAt = false, now
			cools = append(cools, l.cool(now, k.epoch))
		}
	}
	return cools
}

// forget gives up what nobody will say anything of any more.
func (k *Keeper) forget(now time.Time) {
	for h := k.granted.older(now); h != nil; h = k.granted.older(now) {
		if h.state == outgoing || h.state == given {
			h.peer.limit.counts.Vanished++
			k.settle(now, h, machine.Outcome{})
		}
	}
	if at := k.sweepAt(); at.IsZero() || at.After(now) {
		return
	}
	k.swept = now
	k.line = slices.DeleteFunc(k.line, func(p *peer) bool {
		silent := now.Sub(p.heard) >= permit.Forgotten
		if silent {
			k.bury(now, p)
		}
		return silent
	})
}

// sweepEvery is how often silent peers are looked for: a look at thousands costs little.
const sweepEvery = permit.Forgotten / 16

func (k *Keeper) sweepAt() time.Time {
	if len(k.line) == 0 {
		return time.Time{}
	}
	return k.swept.Add(sweepEvery)
}
