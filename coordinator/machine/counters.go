package machine

// Counters count the fates of the items and calls, since the start.
//
// Cooldowns, participants and probes befall lanes; a run has those of each lane
// that it draws on, also where another run shares it.
//
// Two sums hold whenever nothing is under way, and prove that nothing was lost
// and nothing given out twice:
//
//	Offered = Settled + Released
//	Calls   = Settled + HandedOver
type Counters struct {
	Offered       uint64 // items taken over
	Settled       uint64 // items ended by a call
	Released      uint64 // items ended without one: drained, expired, withdrawn, no lane left, or failed by a later decision
	FailedLater   uint64 // of these, the failed ones: by a call that was handed over
	Calls         uint64 // calls granted
	HandedOver    uint64 // calls whose item came back
	Throttled     uint64 // calls refused for now (429, 503, 529)
	Stragglers    uint64 // of these, calls that had left before the cooldown
	Parked        uint64 // times an item was parked
	Redistributed uint64 // times a parked item was given out again
	Delayed       uint64 // times an item was kept back for its backoff
	Cooldowns     uint64 // cooldowns begun
	Participants  uint64 // calls that met the refusals of some cooldown
	Probes        uint64 // probes sent
	Dropped       uint64 // ends of calls that were not the item's current one
}

// Proves reports whether the two sums hold: nothing was lost, nothing was
// given out twice.
func (c Counters) Proves() bool {
	return c.Offered == c.Settled+c.Released && c.Calls == c.Settled+c.HandedOver
}

// A counted is a kind of event that is counted; a tally counts them all.
type counted uint8

const (
	calls counted = iota // each call counts in these two, so they stand next to each other
	settled
	offered
	released
	failedLater
	handedOver
	throttled
	stragglers
	parked
	redistributed
	delayed
	cooldowns
	participants
	probes
	dropped
	countedKinds
)

type tally [countedKinds]uint64

func (t *tally) counters() Counters {
	return Counters{
		Offered: t[offered], Settled: t[settled], Released: t[released], FailedLater: t[failedLater],
		Calls: t[calls], HandedOver: t[handedOver],
		Throttled: t[throttled], Stragglers: t[stragglers],
		Parked: t[parked], Redistributed: t[redistributed], Delayed: t[delayed],
		Cooldowns: t[cooldowns], Participants: t[participants], Probes: t[probes],
		Dropped: t[dropped],
	}
}

// laneWide is the number of kinds of events that befall a lane as a whole, and so each run that
// draws on it: cooldowns and the events after them.
const laneWide = int(dropped - cooldowns)

// laneWide returns the counts of those kinds.
func (t *tally) laneWide() (n [laneWide]uint64) {
	copy(n[:], t[cooldowns:])
	return n
}

// count counts one event of a kind: in all, for its lane and for its run. An event of a lane as
// a whole names no run. Each run that draws on the lane reads it from the lane's counts.
func (m *Machine) count(r *run, l *lane, kind counted) {
	m.totals[kind]++
	if l != nil {
		l.counts[kind]++
	}
	if r != nil {
		r.counts[kind]++
	}
}

// counters returns the counts of the run and of its lanes.
func (r *run) counters() Counters {
	for _, p := range r.opened {
		p.settle()
	}
	return r.counts.counters()
}

// settle counts, for the pool's run, the events of its lanes that were not counted yet.
func (p *pool) settle() {
	for i, l := range p.lanes {
		now := l.counts.laneWide()
		if p.stands == nil && now == [laneWide]uint64{} {
			continue
		}
		x := p.seat(i)
		for k := range now {
			p.run.counts[int(cooldowns)+k] += now[k] - x.seen[k]
		}
		x.seen = now
	}
}
