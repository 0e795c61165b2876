package keeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// A peer is one lane of one life of a worker: it asks for permits.
type peer struct {
	name  peerName
	limit *limit
	team  *team

	seq      uint64 // of the latest ask that was heard
	heard    time.Time
	reported uint64 // number of the latest of its reports that was heard
	wants    []permit.Cost
	more     int
	taken    int            // of the calls wanted: those whose permits wait or are on their way
	remade   bool           // offers were replaced, for other calls, since the latest grant
	offers   []*knownPermit // permits that wait in the machine
	outgoing []*knownPermit // granted, to be given
	onWay    []*knownPermit // granted, but unknown to the worker when it sent its latest ask
	permits  map[permit.Number]*knownPermit
	inLine   bool // in its team's line
	inOutbox bool
	gaveAt   time.Time
	owes     time.Time // since when reports wait for an acknowledgement; zero: there are none
	given    uint64    // permits, in all
}

type peerName struct{ worker, job, limit string }

// A knownPermit is a permit while the keeper knows it.
type knownPermit struct {
	item    machine.Item
	serial  uint64
	peer    *peer
	number  permit.Number
	wave    uint64
	counted charge
	state   state
	at      time.Time // it was granted
	givenAt time.Time
}

// A state is how far a permit has come.
type state uint8

const (
	waiting  state = iota // in the machine, for the law to let a call leave
	outgoing              // granted, and not given yet
	given                 // to its worker
	sent                  // a call has left with it
	over
)

// lostAfter is the age at which a give unknown to its worker counts as lost. It is longer than a round trip plus the time
// between two asks. If a round trip takes longer, the worker gets more than it wants.
const lostAfter = permit.Life / 4

// peerOf returns the peer that an ask comes from, and makes one for a new worker.
func (k *Keeper) peerOf(now time.Time, a *permit.Ask) (*peer, error) {
	name := peerName{a.Worker, a.Job, a.Limit}
	if p := k.peers[name]; p != nil {
		return p, nil
	}
	if len(k.peers) >= MaxPeers {
		return nil, fmt.Errorf("%w workers: %s would be one more than %d", ErrTooMany, a.Worker, MaxPeers)
	}
	l, err := k.limitNamed(now, a.Limit)
	if err != nil {
		return nil, err
	}
	p := &peer{name: name, limit: l, permits: map[permit.Number]*knownPermit{}}
	p.team = l.teamOf(a.Job, k.weight(a.Job))
	p.team.peers++
	k.peers[name] = p
	if len(k.line) == 0 {
		k.sweptAt = now
	}
	k.line = append(k.line, p)
	return p, nil
}

// weight returns a job's share of the limits; 1 if nobody has set it.
func (k *Keeper) weight(job string) float64 {
	if w, named := k.weights[job]; named {
		return w
	}
	return 1
}

// clearArrived removes from onWay the permits that the ask shows to have arrived, and those that are lost or void.
func (k *Keeper) clearArrived(now time.Time, p *peer, a *permit.Ask) {
	n := 0
	for _, h := range p.onWay {
		has := a.Epoch == k.epoch && h.number <= a.Got
		isLost := h.state == given && now.Sub(h.givenAt) > lostAfter
		if !has && !isLost && h.wave == p.limit.wave && (h.state == outgoing || h.state == given) {
			break
		}
		n++
	}
	p.onWay = p.onWay[n:]
	if len(p.onWay) == 0 {
		p.onWay = nil
	}
}

// setWants sets the permits that a worker wants from now on, besides those on their way to it. It withdraws offers for other calls, and
// those beyond the new wants, the latest first. The worker's first call leaves first, and the permits of others would
// wait for it. Offers are replaced at most once between two grants, as a new offer waits behind those of other workers.
func (k *Keeper) setWants(now time.Time, p *peer, wants []permit.Cost, more int) {
	p.wants, p.more = append(p.wants[:0], wants...), more
	kept := min(len(p.offers), max(0, p.wanted()-len(p.onWay)))
	if same := p.stillWanted(); same < kept && !p.remade {
		kept, p.remade = same, true
	}
	for len(p.offers) > kept {
		last := len(p.offers) - 1
		h := p.offers[last]
		p.offers = p.offers[:last]
		p.limit.refund(h)
		k.machine.Step(now, machine.Withdrawn(&h.item))
		k.stirred = true
	}
	p.taken = len(p.onWay) + len(p.offers)
	p.team.joinLine(p)
}

// stillWanted counts the waiting permits, from the first, that are for the calls that would leave next.
func (p *peer) stillWanted() (n int) {
	for n < len(p.offers) && len(p.onWay)+n < p.wanted() && p.offers[n].item.Cost == p.cost(len(p.onWay)+n).Limiter() {
		n++
	}
	return n
}

// wanted returns the number of permits that the worker wants besides those in its hand.
func (p *peer) wanted() int { return len(p.wants) + p.more }

func (p *peer) needs() bool { return p.taken < p.wanted() }

// cost returns the cost of the permit for the wanted call i. Calls beyond those that the ask lists take the listed
// costs in turn.
func (p *peer) cost(i int) permit.Cost {
	if len(p.wants) == 0 {
		return permit.Cost{}
	}
	return p.wants[i%len(p.wants)]
}

// giveAt returns the time when the peer may be sent its next give.
func (p *peer) giveAt() time.Time {
	at := p.gaveAt.Add(permit.GiveEvery)
	if len(p.outgoing) == 0 {
		return latest(at, p.owes.Add(permit.HeardWithin))
	}
	return at
}

// give builds the next message to a peer.
func (p *peer) give(now time.Time, epoch uint64) permit.Give {
	n := min(len(p.outgoing), permit.MaxPermits)
	g := permit.Give{
		Version: permit.Version, Worker: p.name.worker, Job: p.name.job, Limit: p.name.limit,
		Epoch: epoch, Wave: p.limit.wave, Heard: p.seq, Answered: p.limit.answered,
	}
	if n > 0 {
		g.Permits = make([]permit.Permit, n)
	}
	for i, h := range p.outgoing[:n] {
		h.state, h.givenAt = given, now
		g.Permits[i] = permit.Permit{Number: h.number, Cost: permit.CostOf(h.item.Cost), Probe: h.item.Probe}
	}
	p.outgoing = p.outgoing[n:]
	if len(p.outgoing) == 0 {
		p.outgoing = nil
	}
	p.gaveAt, p.owes = now, time.Time{}
	return g
}

// forgetPeer forgets a silent peer. The permits it was given, and the calls it sent, end without a report.
func (k *Keeper) forgetPeer(now time.Time, p *peer) {
	k.setWants(now, p, nil, 0)
	last := make([]*knownPermit, 0, len(p.permits))
	for _, h := range p.permits {
		last = append(last, h)
	}
	slices.SortFunc(last, func(a, b *knownPermit) int { return cmp.Compare(a.number, b.number) })
	for _, h := range last {
		o := machine.Outcome{Unsent: h.state == outgoing}
		if !o.Unsent {
			p.limit.counts.Vanished++
		}
		k.settle(now, h, o)
	}
	p.outgoing, p.onWay = nil, nil
	p.limit.leave(p)
	delete(k.peers, p.name)
}

// A queue holds permits in the order in which they were granted.
type queue struct {
	items []*knownPermit
	first int
}

func (q *queue) push(h *knownPermit) {
	if q.first > len(q.items)/2 {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, h)
}

// forgetAt returns the time when the first permit is forgotten; zero: there is none.
func (q *queue) forgetAt() time.Time {
	for q.first < len(q.items) {
		if h := q.items[q.first]; h.state == outgoing || h.state == given {
			return h.at.Add(permit.Forgotten)
		}
		q.items[q.first] = nil // a call that has left is its worker's to report
		q.first++
	}
	q.items, q.first = q.items[:0], 0
	return time.Time{}
}

// popForgotten removes and returns the first permit that is due to be forgotten; nil: there is none.
func (q *queue) popForgotten(now time.Time) *knownPermit {
	if at := q.forgetAt(); at.IsZero() || at.After(now) {
		return nil
	}
	h := q.items[q.first]
	q.items[q.first] = nil
	q.first++
	return h
}
