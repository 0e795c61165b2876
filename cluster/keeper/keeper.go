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
	// MaxWaiting bounds the permits of one limit that wait in the machine. Turns no longer govern a permit that waits
	// there, and its worker may be dead. Fewer wait where few are granted.
	MaxWaiting = 64
	// MaxInFlight bounds the permits of one limit that are out. It allows 15,000 calls a second of a minute each, at
	// some 500 bytes a permit.
	MaxInFlight = 1 << 20
	// MaxLimits bounds the limits that a keeper knows: an organisation has as many as keys and models.
	MaxLimits = 4096
	// MaxPeers bounds the workers' lanes that a keeper knows: a thousand workers with 64 jobs each. The keeper
	// rejects asks of further lanes.
	MaxPeers = 1 << 16
)

// Errors about asks that the keeper does not hear.
var (
	// ErrOutbid: the worker has heard a later keeper. This one gives no more permits.
	ErrOutbid = errors.New("keeper: there is a later one")
	// ErrTooMany: there is no room for one more worker or limit.
	ErrTooMany = errors.New("keeper: too many")
)

// Config holds a keeper's initial state. The core discovers the limits that nobody names, as it discovers a lane's.
type Config struct {
	Epoch  uint64                        // of this keeper: higher than any keeper's before it; from 1
	Seed   uint64                        // of the machine's jitter: same seed, same waits
	Limits map[string]machine.LaneConfig // the known properties of limits
	Memory map[string]machine.LaneMemory // what the keeper before this one had learned; New empties the levels in it
	Stops  map[string]*permit.Cause      // the limits that the earlier keeper had stopped; they stay stopped until [Keeper.Reset]
}

// A Keeper gives permits. It is a value in the care of one owner: no method may be called
// while another runs. Create one with [New].
type Keeper struct {
	epoch     uint64
	machine   *machine.Machine
	limits    map[string]*limit
	order     []*limit // the same, in an order that does not depend on chance
	stops     map[string]*permit.Cause
	heard     map[string]bool // limits under which a call was answered in an earlier keeper's time
	weights   map[string]float64
	peers     map[peerName]*peer
	line      []*peer   // the same, in the order in which they came
	outbox    []*peer   // peers with something to be sent
	outboxDue time.Time // when the first of them may be sent its give
	granted   queue     // permits in the order of their grants
	number    permit.Number

	began           time.Time // the first call
	now             time.Time // of the latest call: time never goes back in here
	decidedAt       time.Time // the latest decision
	limitsCheckedAt time.Time // when the keeper last looked at what binds the limits
	sweptAt         time.Time // when the keeper last looked for silent peers
	wake            time.Time // when time alone changes something in the machine; zero: never
	stirred         bool      // a fact has come since the latest decision
	urgent          bool      // and it must not wait for the next decision
	outbid          uint64    // the highest epoch of a later keeper that a worker has heard; 0: none
}

// Out is everything that follows from the facts a keeper has heard; its owner sends it as it is.
type Out struct {
	Gives  []permit.Give
	Cools  []permit.Cool
	Outbid uint64    // the epoch of a later keeper; 0: there is none. This one must end
	WakeAt time.Time // when to ask again if no fact comes before; zero: only after a fact
}

// farAway is the time for which the machine remembers an unused limit. It covers the keeper's life: limits are few and
// knowledge of them is dear.
const farAway = time.Duration(math.MaxInt64)

// New returns a keeper that knows no worker yet.
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

// Limit sets the properties of a limit, or changes them; see [machine.LaneDefined].
func (k *Keeper) Limit(now time.Time, name string, c machine.LaneConfig) {
	k.machine.Step(k.tick(now), machine.LaneDefined(name, c))
	k.stirred = true
}

// Job sets a job's share of the limits relative to other jobs: twice the weight is twice as much. A weight that is not
// over 0 counts as 1, as does a job without a weight.
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

// JobGone says that a job is over. The keeper forgets what its workers want, and gives them only what they ask for from
// now on. The permits they have still count.
func (k *Keeper) JobGone(now time.Time, name string) {
	now = k.tick(now)
	delete(k.weights, name)
	for _, p := range k.line {
		if p.name.job == name {
			k.setWants(now, p, nil, 0)
		}
	}
}

// Reset says that a person vouches for a limit. The limit flows again, with nothing held against it.
func (k *Keeper) Reset(now time.Time, name string) {
	now = k.tick(now)
	if k.stops[name] != nil {
		delete(k.stops, name)
		k.Remind(now, name) // the keeper before has stopped its workers, and they do not ask any more
	}
	if l := k.limits[name]; l != nil {
		l.alike = refusalRow{}
	}
	k.machine.Step(now, machine.LaneReset(name))
	k.stirred, k.urgent = true, true
}

// Remind tells all workers how a limit stands. Workers that an earlier keeper has stopped go on, unless this keeper has
// stopped the limit too.
func (k *Keeper) Remind(now time.Time, name string) {
	l, err := k.limitNamed(k.tick(now), name)
	if err != nil {
		return // a worker that asks gets the error
	}
	l.announce, k.stirred, k.urgent = true, true, true
}

// Heard absorbs an ask. A repeated ask, or one older than an ask already heard, changes nothing. An error says why the
// keeper did not hear it: permit.ErrVersion, permit.ErrMessage, [ErrOutbid] or [ErrTooMany].
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
	if a.Weight > 0 { // it is of no job that a scheduler knows
		p.team.reweigh(a.Weight)
	}
	k.stirred = true
	k.handleReports(now, p, &a)
	k.clearArrived(now, p, &a)
	k.setWants(now, p, a.Wants, a.More)
	p.limit.remind(now)
	return nil
}

// decideEvery is the least time between two decisions; the keeper asks the law at the moments that the law names. The
// law saves up calls, and not their cost. Of the calls saved up between two looks, a cheap one would count as much as a
// dear one. Above a thousand calls a second the keeper looks less than once a call, and a call more or less matters
// little there.
const decideEvery = time.Millisecond

// Ready decides: it gives what time or asks have made possible. Facts wait for permit.GiveEvery, so that one decision
// covers many asks. A refusal does not wait.
func (k *Keeper) Ready(now time.Time) (out Out) {
	now = k.tick(now)
	if k.outbid > 0 {
		return Out{Outbid: k.outbid}
	}
	if at := k.dueAt(); !at.IsZero() && !at.After(now) {
		k.decidedAt, k.stirred, k.urgent = now, false, false
		k.forget(now)
		k.grant(now)
		out.Gives = k.give(now)
		out.Cools = k.cool(now)
	}
	out.WakeAt = k.dueAt()
	return out
}

// dueAt returns the time of the next decision; zero: only after a fact.
func (k *Keeper) dueAt() time.Time {
	if k.urgent {
		return k.now // and not k.looked, which may be zero
	}
	at := earliest(k.wake, k.granted.forgetAt(), k.sweepAt())
	if !at.IsZero() {
		at = latest(at, k.decidedAt.Add(decideEvery))
	}
	if k.stirred {
		at = earliest(at, k.decidedAt.Add(permit.GiveEvery))
	}
	if len(k.outbox) > 0 {
		at = earliest(at, latest(k.outboxDue, k.decidedAt.Add(decideEvery)))
	}
	return at
}

// earliest returns the first of some moments, and skips zero ones.
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

// Save returns what the next keeper should know, as its [Config].Memory.
func (k *Keeper) Save(now time.Time) map[string]machine.LaneMemory {
	return k.machine.SaveLanes(k.tick(now))
}

// Stops returns the stopped limits with their causes, as [Config].Stops of the next keeper.
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

// tick keeps time from going back, as the machine does.
func (k *Keeper) tick(now time.Time) time.Time {
	if k.began.IsZero() {
		k.began = now
	}
	if now.After(k.now) {
		k.now = now
	}
	return k.now
}

// give sends one give to each peer in the outbox whose time has come. A peer stays in the outbox
// until its time comes, and as long as it has more permits than one give carries.
func (k *Keeper) give(now time.Time) (gives []permit.Give) {
	kept := k.outbox[:0]
	k.outboxDue = time.Time{}
	for _, p := range k.outbox {
		if !p.giveAt().After(now) {
			gives = append(gives, p.give(now, k.epoch))
			if p.inOutbox = len(p.outgoing) > 0; !p.inOutbox {
				continue
			}
		}
		kept = append(kept, p)
		k.outboxDue = earliest(k.outboxDue, p.giveAt())
	}
	clear(k.outbox[len(kept):])
	k.outbox = kept
	return gives
}

// post puts a peer with something to be sent in the outbox.
func (k *Keeper) post(p *peer) {
	if !p.inOutbox {
		p.inOutbox = true
		k.outbox = append(k.outbox, p)
	}
	k.outboxDue = earliest(k.outboxDue, p.giveAt())
}

// cool announces to all workers how the limits with announce set stand: after a wave, and as a reminder.
func (k *Keeper) cool(now time.Time) (cools []permit.Cool) {
	for _, l := range k.order {
		if l.announce {
			l.announce, l.saidAt = false, now
			cools = append(cools, l.cool(now, k.epoch))
		}
	}
	return cools
}

// forget gives up permits that nobody will report on, and peers that are silent.
func (k *Keeper) forget(now time.Time) {
	for h := k.granted.popForgotten(now); h != nil; h = k.granted.popForgotten(now) {
		if h.state == outgoing || h.state == given {
			h.peer.limit.counts.Vanished++
			k.settle(now, h, machine.Outcome{})
		}
	}
	if at := k.sweepAt(); at.IsZero() || at.After(now) {
		return
	}
	k.sweptAt = now
	k.line = slices.DeleteFunc(k.line, func(p *peer) bool {
		silent := now.Sub(p.heard) >= permit.Forgotten
		if silent {
			k.forgetPeer(now, p)
		}
		return silent
	})
}

// sweepEvery is the time between two looks for silent peers: a look at thousands costs little.
const sweepEvery = permit.Forgotten / 16

func (k *Keeper) sweepAt() time.Time {
	if len(k.line) == 0 {
		return time.Time{}
	}
	return k.sweptAt.Add(sweepEvery)
}

// Counts counts permits since the keeper began. Permits given but not counted as ended, unused
// or vanished belong to calls in flight or are in a worker's hand.
type Counts struct {
	Given    uint64 // to workers
	Ended    uint64 // calls that ended
	Refused  uint64 // of those: refused for now, with those of an earlier keeper's permits among them
	Unused   uint64 // came back
	Vanished uint64 // no report ever came
}

// Status is a picture of a keeper at one moment.
type Status struct {
	At     time.Time
	Epoch  uint64
	Limits []LimitStatus // in the order in which they were first asked for
}

// LimitStatus is a picture of one limit. Lane holds what its lane believes, what binds it, its
// rate and its level.
type LimitStatus struct {
	Name    string
	Lane    machine.LaneStatus
	Wave    uint64
	Stopped *permit.Cause // nil: it is not
	Counts  Counts
	Jobs    []JobStatus // in the order in which they first asked
}

// JobStatus is a picture of a job under a limit.
type JobStatus struct {
	Name    string
	Weight  float64
	Given   uint64
	Wanted  int // permits that its workers want, and have not been given
	Out     int // permits that its workers have: calls in flight, or permits in hand
	Workers int // that have asked and are not forgotten
}

// Status takes a picture.
func (k *Keeper) Status(now time.Time) Status {
	now = k.tick(now)
	s := Status{At: now, Epoch: k.epoch}
	lanes := map[string]machine.LaneStatus{}
	for _, lane := range k.machine.Status(now, len(k.order)).Lanes {
		lanes[lane.Name] = lane
	}
	jobs := map[*team]*JobStatus{}
	for _, l := range k.order {
		ls := LimitStatus{Name: l.name, Lane: lanes[l.name], Wave: l.wave, Stopped: l.stopped, Counts: l.counts}
		for _, t := range l.turns {
			ls.Jobs = append(ls.Jobs, JobStatus{Name: t.job, Weight: t.weight, Given: t.given})
		}
		for i, t := range l.turns {
			jobs[t] = &ls.Jobs[i]
		}
		s.Limits = append(s.Limits, ls)
	}
	for _, p := range k.line {
		j := jobs[p.team]
		j.Wanted += max(0, p.wanted()-p.taken) + len(p.offers)
		j.Out += len(p.permits)
		j.Workers++
	}
	return s
}
