package keeper

import (
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Reports say how permits end.

// handleReports handles those reports of an ask that are new. Reports are numbered, so that one repeated because a give was
// lost teaches nothing twice.
func (k *Keeper) handleReports(now time.Time, p *peer, a *permit.Ask) {
	if len(a.Reports) > 0 { // the next give acknowledges them, and the worker need not repeat them
		if p.owes.IsZero() {
			p.owes = now
		}
		k.post(p)
	}
	for i := range a.Reports {
		if number := a.First + uint64(i); number > p.reported {
			p.reported = number
			k.handleReport(now, p, a, &a.Reports[i])
		}
	}
}

// handleReport handles one new report. A permit that is not in the books is of another keeper, or was
// given up: see overheard.
func (k *Keeper) handleReport(now time.Time, p *peer, a *permit.Ask, r *permit.Report) {
	var h *knownPermit // the permit; nil: it is not in the books
	if r.Epoch == k.epoch {
		h = p.permits[r.Number]
	}
	switch {
	case h == nil:
		k.overheard(now, p, a, r)
	case r.Unused && h.state == sent:
		// A worker that reports both is wrong. Returning the charge of a call that left would allow a burst.
	case r.Unused:
		p.limit.refund(h)
		p.limit.counts.Unused++
		k.settle(now, h, machine.Outcome{Unsent: true})
	case r.Ended == nil:
		h.state = sent
	default:
		k.settleEnded(now, h, r)
	}
}

// overheard handles the end of a call that is not in the books. The call left with a permit of an earlier keeper, or
// the keeper had given it up as its worker was silent too long.
func (k *Keeper) overheard(now time.Time, p *peer, a *permit.Ask, r *permit.Report) {
	if r.Ended == nil {
		return
	}
	o, err := r.Ended.Machine()
	if err != nil {
		return // it was valid when the keeper heard the ask
	}
	if k.mayBeOld(now, a, r) {
		o.Sightings = nil
	}
	k.learnFrom(p.limit, &o)
	k.machine.Step(now, machine.Overheard(p.limit.name, now.Add(-r.Age), r.Cost.Limiter(), o))
}

// mayBeOld reports whether an ask may have lain on its way for seconds. A worker that is cut off does not know it, and
// its messages arrive when the cut is over. A report's age counts up to its sending, so old headers would count as
// current. If this keeper has given the call up, the call ended seconds ago, or its end was reported then. A worker
// may lack news of this keeper for a moment after the keeper's start; later, the worker was cut off.
func (k *Keeper) mayBeOld(now time.Time, a *permit.Ask, r *permit.Report) bool {
	return r.Epoch == k.epoch || a.Epoch < k.epoch && now.Sub(k.began) > permit.Forgotten
}

// settleEnded settles the permit of a call that has ended. A worker measures from the call's leaving,
// and the machine from the permit's grant, so settleEnded changes one into the other.
func (k *Keeper) settleEnded(now time.Time, h *knownPermit, r *permit.Report) {
	o, err := r.Ended.Machine()
	if err != nil {
		return
	}
	k.learnFrom(h.peer.limit, &o)
	asOfGrant(o.Sightings, max(0, now.Add(-r.Age).Sub(h.at)))
	if o.Signal == machine.Throttled || o.Signal == machine.Overloaded {
		// From refusals the machine learns how long after a grant to expect more of them. The ways to the worker and
		// back are part of that.
		o.Latency = max(o.Latency, now.Sub(h.at))
	}
	// A permit is out for longer than its call. By the latency of short calls alone, no more permits could be out than
	// the law's least window. That is 64 for all workers, each out for about a tenth of a second.
	o.Detour = max(0, now.Sub(h.at)-o.Latency)
	if o.Unsent {
		h.peer.limit.refund(h)
	}
	h.peer.limit.counts.Ended++
	k.settle(now, h, o)
}

// learnFrom notes the consequences of a call's end for all workers. It changes a refusal that may concern the item alone
// into an answer.
func (k *Keeper) learnFrom(l *limit, o *machine.Outcome) {
	switch o.Signal {
	case machine.Succeeded, machine.Answered:
		if o.Signal == machine.Succeeded || o.Alike == 0 { // a 400 to an item does not clear a key
			l.answered, l.alike = true, refusalRow{}
		}
	case machine.Throttled, machine.Overloaded:
		k.urgent = true
		l.counts.Refused++
	case machine.Exhausted:
		if o.Alike != 0 && !l.rowShowsStop(o) {
			o.Signal = machine.Answered // as far as is known, the fault is the item's
			return
		}
		o.Alike = 0
		k.urgent = true
	}
}

// A refusalRow counts different items in a row that were refused for good alike. The refusals do not say whom they
// concern, and no item was answered in between.
type refusalRow struct {
	how   uint32
	items int
}

// rowShowsStop adds an item to the row, and reports whether the limit is to blame.
func (l *limit) rowShowsStop(o *machine.Outcome) bool {
	if l.alike.how != o.Alike {
		l.alike = refusalRow{how: o.Alike}
	}
	if !o.Again {
		l.alike.items++
	}
	need := int(o.First)
	if l.answered { // perhaps under an earlier keeper
		need = int(o.Later)
	}
	return need > 0 && l.alike.items >= need
}

// settle takes a permit out of the books, and tells the machine how its call ended.
func (k *Keeper) settle(now time.Time, h *knownPermit, o machine.Outcome) {
	h.state = over
	delete(h.peer.permits, h.number)
	k.machine.Step(now, machine.Settled(machine.Grant{Item: &h.item, Serial: h.serial}, o))
	k.stirred = true
}

// asOfGrant changes sightings to what they would have shown when the call's permit was granted. The call left that much
// later. The law dates sightings by the grant, and assumes that the server had counted every call granted before. The
// flow in between belongs to calls that were still on their way.
func asOfGrant(seen []limiter.Sighting, later time.Duration) {
	for i := range seen {
		s := &seen[i]
		window := s.Window
		if window <= 0 {
			window = time.Minute // as the law takes it, until it is found out
		}
		s.Remaining = max(0, s.Remaining-s.Limit*later.Seconds()/window.Seconds())
		if s.HasReset {
			s.Reset += later
		}
	}
}
