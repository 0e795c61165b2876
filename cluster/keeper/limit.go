package keeper

import (
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A limit is one of the organisation's: a lane of the machine with a run of its own, and the
// teams that ask for it.
type limit struct {
	name       string
	run        machine.RunID
	wave       uint64        // epoch of the lane: a permit granted in an older one is void
	stopped    *permit.Cause // nil: it is not
	answered   bool          // a call under it was answered
	alike      refusalRow    // of refusals for good
	coolsUntil time.Time     // of the latest wave
	announce   bool          // all workers must hear of the latest wave, or how the limit stands
	saidAt     time.Time
	room       int // permits that may wait in the machine
	waiting    int // permits that do

	teams   map[string]*team
	turns   []*team           // the same, in an order that does not depend on chance
	binds   limiter.Dimension // unit of turns; None means requests
	unit    uint64            // counts changes of binds: charges of different units do not mix
	floor   float64           // what the team with the latest turn had spent
	flow    float64           // units given in about a second
	fadedAt time.Time
	granted int // permits granted in this decision
	counts  Counts
}

// limitNamed finds a limit, or makes it.
func (k *Keeper) limitNamed(now time.Time, name string) (*limit, error) {
	if l := k.limits[name]; l != nil {
		return l, nil
	}
	if len(k.limits) >= MaxLimits {
		return nil, fmt.Errorf("%w limits: %s would be one more than %d", ErrTooMany, name, MaxLimits)
	}
	l := &limit{name: name, run: machine.RunID(len(k.order) + 1), room: 1, teams: map[string]*team{}, answered: k.heard[name]}
	k.limits[name] = l
	k.order = append(k.order, l)
	k.machine.Step(now, machine.RunOpened(l.run, machine.RunConfig{Concurrency: MaxInFlight}))
	if l.answered { // a failure now is an outage, and not an address that was never right
		k.machine.Step(now, machine.Overheard(name, now, limiter.Cost{}, machine.Outcome{Signal: machine.Answered}))
	}
	if cause := k.stops[name]; cause != nil {
		delete(k.stops, name)
		k.machine.Step(now, machine.Overheard(name, now, limiter.Cost{}, machine.Outcome{Signal: machine.Exhausted, Cause: cause}))
	}
	return l, nil
}

// grant offers permits to the machine in the order of turns and takes its grants, until the
// machine grants no more.
func (k *Keeper) grant(now time.Time) {
	k.checkLimits(now)
	for more := true; more; {
		for _, l := range k.order {
			k.offer(now, l)
		}
		r := k.machine.Ready(now)
		k.wake = r.WakeAt
		for i := range r.Transitions {
			k.phaseChanged(now, &r.Transitions[i])
		}
		more = len(r.Grants) > 0
		for _, g := range slices.Clone(r.Grants) { // ending one makes the machine's own invalid
			k.takeGrant(now, g)
		}
	}
	for _, l := range k.order {
		l.fitRoom()
	}
}

// fitRoom makes room in the machine for as many permits as are granted in a while. A permit that
// waits there cannot go to another worker. Where one call a second may leave, room for one is
// enough.
func (l *limit) fitRoom() {
	if l.waiting > 0 {
		l.room = max(1, min(MaxWaiting, 2*l.granted))
	}
	l.granted = 0
}

// offer fills the room of a limit in the machine.
func (k *Keeper) offer(now time.Time, l *limit) {
	if l.stopped != nil {
		return
	}
	if l.waiting == 0 && l.granted >= l.room {
		l.room = min(MaxWaiting, 2*l.room)
	}
	var items []*machine.Item
	for l.waiting < l.room {
		p := l.nextPeer(now)
		if p == nil {
			break
		}
		h := &knownPermit{peer: p}
		h.item = machine.Item{Pool: l.name, Cost: p.cost(p.taken).Limiter(), Payload: h}
		p.taken++
		p.offers = append(p.offers, h)
		l.waiting++
		l.spend(now, p.team, h)
		p.team.joinLine(p)
		items = append(items, &h.item)
	}
	if len(items) > 0 {
		k.machine.Step(now, machine.Offered(l.run, items))
	}
}

// takeGrant handles the machine's answer to an offer.
func (k *Keeper) takeGrant(now time.Time, g machine.Grant) {
	h := g.Item.Payload.(*knownPermit)
	p := h.peer
	l := p.limit
	l.waiting--
	if i := slices.Index(p.offers, h); i >= 0 {
		p.offers = slices.Delete(p.offers, i, i+1)
	}
	if g.Verdict != machine.Call {
		l.refund(h)
		h.state = over
		k.machine.Step(now, machine.Settled(g, machine.Outcome{}))
		return
	}
	k.number++
	h.number, h.serial, h.wave, h.at, h.state = k.number, g.Serial, g.Epoch, now, outgoing
	p.permits[h.number] = h
	p.outgoing = append(p.outgoing, h)
	p.onWay = append(p.onWay, h)
	k.granted.push(h)
	k.post(p)
	p.given++
	p.remade = false
	p.team.given++
	l.counts.Given++
	l.granted++
}

// phaseChanged handles the change of a limit's lane from one phase to another. It takes back permits that
// were granted before a wave and are not sent yet, so that no worker has to report them void.
func (k *Keeper) phaseChanged(now time.Time, t *machine.Transition) {
	l := k.limits[t.Lane]
	if l == nil {
		return
	}
	l.stopped = nil
	if t.To == machine.Stopped {
		l.stopped = permit.CauseOf(t.Cause)
	}
	if t.Epoch <= l.wave {
		return
	}
	l.wave, l.coolsUntil, l.announce = t.Epoch, t.Until, true
	for _, p := range k.outbox {
		if p.limit != l {
			continue
		}
		for _, h := range p.outgoing {
			l.refund(h)
			k.settle(now, h, machine.Outcome{Unsent: true})
		}
		p.outgoing, p.onWay = nil, nil
		p.taken = len(p.offers)
		p.team.joinLine(p)
	}
}

// cool returns the message about the latest wave.
func (l *limit) cool(now time.Time, epoch uint64) permit.Cool {
	c := permit.Cool{Version: permit.Version, Limit: l.name, Epoch: epoch, Wave: l.wave, Stopped: l.stopped}
	if l.stopped == nil {
		c.For = max(0, l.coolsUntil.Sub(now))
	}
	return c
}

// remindEvery is the time between two reminders that a limit is stopped. A worker that asks may
// be new, or have missed the first message.
const remindEvery = time.Second

// remind has a stopped limit announced again, once each remindEvery.
func (l *limit) remind(now time.Time) {
	if l.stopped != nil && now.Sub(l.saidAt) >= remindEvery {
		l.announce = true
	}
}

// checkEvery is the time between two looks at what binds a limit: that changes in minutes.
const checkEvery = time.Second

// checkLimits finds the unit in which turns are counted.
func (k *Keeper) checkLimits(now time.Time) {
	if now.Sub(k.limitsCheckedAt) < checkEvery {
		return
	}
	k.limitsCheckedAt = now
	for _, s := range k.machine.Status(now, len(k.order)).Lanes {
		if l := k.limits[s.Name]; l != nil {
			l.countIn(dimensionOf(s.View.Binds.By, l.binds))
		}
	}
}

// dimensionOf returns the dimension that binds, or was if no dimension does.
func dimensionOf(by limiter.Bound, was limiter.Dimension) limiter.Dimension {
	switch by {
	case limiter.BoundRequests:
		return limiter.Requests
	case limiter.BoundTokens:
		return limiter.Tokens
	case limiter.BoundInputTokens:
		return limiter.InputTokens
	case limiter.BoundOutputTokens:
		return limiter.OutputTokens
	}
	return was
}
