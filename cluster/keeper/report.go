package keeper

import (
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// What becomes of permits, as their workers report it.

// reports takes those of an ask that were not heard before. They are numbered, so that what is
// said again, because a give was lost, teaches nothing twice.
func (k *Keeper) reports(now time.Time, p *peer, a *permit.Ask) {
	if len(a.Reports) > 0 { // they need not be said again
		if p.owes.IsZero() {
			p.owes = now
		}
		k.post(p)
	}
	for i := range a.Reports {
		if number := a.First + uint64(i); number > p.reported {
			p.reported = number
			k.report(now, p, a, &a.Reports[i])
		}
	}
}

func (k *Keeper) report(now time.Time, p *peer, a *permit.Ask, r *permit.Report) {
	var h *held
	if r.Epoch == k.epoch {
		h = p.permits[r.Number]
	}
	switch {
	case h == nil:
		k.overheard(now, p, a, r)
	case r.Unused && h.state == sent:
		// A worker that says both is wrong, and a charge that came back for a call that left
		// would be a burst.
	case r.Unused:
		p.limit.refund(h)
		p.limit.counts.Unused++
		k.settle(now, h, machine.Outcome{Unsent: true})
	case r.Ended == nil:
		h.state = sent
	default:
		k.ended(now, h, r)
	}
}

// overheard takes how a call ended that is not in the books: it left with a permit of an
// earlier keeper, or its worker was silent for so long that it was given up.
func (k *Keeper) overheard(now time.Time, p *peer, a *permit.Ask, r *permit.Report) {
	if r.Ended == nil {
		return
	}
	o, err := r.Ended.Machine()
	if err != nil {
		return // it was valid when the ask was heard
	}
	if k.layLong(now, a, r) {
		o.Sightings = nil
	}
	k.lesson(p.limit, &o)
	k.machine.Step(now, machine.Overheard(p.limit.name, now.Add(-r.Age), r.Cost.Limiter(), o))
}

// layLong reports whether an ask may have lain on its way for seconds: that a worker is cut off, and its words come when
// the cut is over, none of them knows. The age of a report is that of when it was said, and what headers showed then
// would be believed of now. A call that this keeper has given up ended seconds ago, or its end was said
// then. Who has not heard of this keeper is new to it for a moment, and after that was cut off.
func (k *Keeper) layLong(now time.Time, a *permit.Ask, r *permit.Report) bool {
	return r.Epoch == k.epoch || a.Epoch < k.epoch && now.Sub(k.began) > permit.Forgotten
}

func (k *Keeper) ended(now time.Time, h *held, r *permit.Report) {
	o, err := r.Ended.Machine()
	if err != nil {
		return
	}
	k.lesson(h.peer.limit, &o)
	granted(o.Sightings, max(0, now.Add(-r.Age).Sub(h.at)))
	if o.Signal == machine.Throttled || o.Signal == machine.Overloaded {
		// What the machine learns of refusals is how long after a grant none is to be expected
		// any more. The ways to the worker and back are part of that.
		o.Latency = max(o.Latency, now.Sub(h.at))
	}
	// A permit is in flight for longer than its call: by the calls alone, of short ones no more could be
	// out than the law lets hang at first, which is 64 for all workers and a tenth of a second.
	o.Detour = max(0, now.Sub(h.at)-o.Latency)
	if o.Unsent {
		h.peer.limit.refund(h)
	}
	h.peer.limit.counts.Ended++
	k.settle(now, h, o)
}

// lesson notes what the end of a call means to everybody.
func (k *Keeper) lesson(l *limit, o *machine.Outcome) {
	switch o.Signal {
	case machine.Succeeded, machine.Answered:
		if o.Signal == machine.Succeeded || o.Alike == 0 { // a 400 to an item does not clear a key
			l.answered, l.alike = true, alikeRow{}
		}
	case machine.Throttled, machine.Overloaded:
		k.urgent = true
		l.counts.Refused++
	case machine.Exhausted:
		if o.Alike != 0 && !l.rowIsFull(o) {
			o.Signal = machine.Answered // it is its item's, as far as is known
			return
		}
		o.Alike = 0
		k.urgent = true
	}
}

// An alikeRow is different items that were refused for good alike, in words that do not say whom they
// concern, with none answered between.
type alikeRow struct {
	how   uint32
	items int
}

// rowIsFull adds an item to the row, and reports whether the limit is to blame.
func (l *limit) rowIsFull(o *machine.Outcome) bool {
	if l.alike.how != o.Alike {
		l.alike = alikeRow{how: o.Alike}
	}
	if !o.Again {
		l.alike.items++
	}
	need := int(o.First)
	if l.answered { // under an earlier keeper, perhaps
		need = int(o.Later)
	}
	return need > 0 && l.alike.items >= need
}

// settle ends a permit.
func (k *Keeper) settle(now time.Time, h *held, o machine.Outcome) {
	h.state = over
	delete(h.peer.permits, h.number)
	k.machine.Step(now, machine.Settled(machine.Grant{Item: &h.item, Serial: h.serial}, o))
	k.stirred = true
}

// granted has sightings say what they would have said when the call's permit was granted, and
// not when it left, so much later. The law dates them by the grant, and takes every call that
// was granted before for one that the server had counted: what flowed in meanwhile was for
// those that were still on their way.
func granted(seen []limiter.Sighting, later time.Duration) {
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
