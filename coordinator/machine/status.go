package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Speed says in three words what holds a lane back.
type Speed uint8

// The speeds.
const (
	FullSpeed       Speed = iota // nothing but the run's concurrency
	ClientThrottled              // our own limits or learned rate: the next call waits for its turn
	ServerThrottled              // the server's word: cooling, probed, climbing back, or stopped
)

var speedWords = [...]string{"full speed", "client throttled", "server throttled"}

func (s Speed) String() string { return speedWords[s] }

// Status is a picture of a machine at one moment.
type Status struct {
	At     time.Time
	Totals Counters
	Run    RunStatus    // of the run that asked; zero if none did
	Held   int          // items that wait, of all runs
	Lanes  []LaneStatus // the busiest, busiest first
	Known  int          // lanes in all

	Open     int       // lanes whose breaker is open: their server is taken to be down
	HalfOpen int       // lanes whose breaker lets one call through, to see
	WakeAt   time.Time // zero: only when something happens
}

// LaneStatus is a picture of one lane.
type LaneStatus struct {
	Name     string
	Phase    Phase
	Reason   Reason
	Cause    error // of Stopped; while the breaker is not closed, what the calls broke of; nil: nobody said
	Speed    Speed
	Why      string        // what the next call waits for; "" if it does not wait
	Wait     time.Duration // how long, as far as time alone decides
	Until    time.Time     // when time alone changes the phase; zero: it does not
	Epoch    uint64
	Wave     int     // calls that met the refusals of its latest cooldown
	Rate     float64 // calls per second that are allowed; +Inf while unlimited
	Level    Levels
	InFlight int
	Parked   int
	Delayed  int       // items that wait for themselves, or until it is known whose their failure is
	FirstDue time.Time // when the first of them may go again; zero: there is none
	LastDue  time.Time // and the last
	Breaker  limiter.BreakerState
	Failures int           // calls in a row that broke, as far as the breaker counts them
	Latency  time.Duration // smoothed, of answers
	P95      time.Duration
	Errors   float64 // share of calls that broke, 0..1, over the error window
	Slowed   float64 // the part of its pace that is left because too many broke, 0..1; 0: all of it, they do not
	Counters Counters
	View     limiter.View // the law's beliefs
	Bound    Bound        // the bound of the lane's own that holds its next call back; BoundNone: nothing does
	Draw     limiter.Cost // of one of the items that wait for it, on average, as its law counts it; zero: none waits
	Account  string       // that it draws on; "": it shares none
	Local    bool         // it is a server of one's own, which may queue what is in flight
	Window   int          // calls that may be in flight on it, by the user's word or the law's; 0: as many as the run allows
}

// Levels are the units that each known limit has left now; negative is debt. A limit that is
// not known is +Inf.
type Levels struct{ Requests, Tokens, InputTokens, OutputTokens float64 }

// Status takes a picture, with the n busiest lanes in it.
func (m *Machine) Status(now time.Time, n int) Status {
	return m.picture(now, n, m.inLine())
}

// StatusOf takes a picture for one run, of its n busiest lanes. If other runs are open too, it
// shows only the lanes that this run draws on.
func (m *Machine) StatusOf(now time.Time, n int, id RunID) Status {
	lanes := m.inLine()
	if r := m.runs[id]; r != nil && len(m.runs) > 1 {
		lanes = slices.DeleteFunc(lanes, func(l *lane) bool { return !r.drawsOn(l) })
	}
	s := m.picture(now, n, lanes)
	s.Run = m.RunStatus(id)
	return s
}

// picture takes a picture of these lanes, busiest first, and shows n of them.
func (m *Machine) picture(now time.Time, n int, lanes []*lane) Status {
	now = m.tick(now)
	s := Status{At: now, Totals: m.totals.counters(), Held: m.waiting, Known: len(lanes), WakeAt: m.wakeAt()}
	slices.SortFunc(lanes, busier) // before they are pictured: a picture costs a sort of its own, and there may be thousands
	for _, l := range lanes[:max(0, min(n, len(lanes)))] {
		s.Lanes = append(s.Lanes, l.status(now))
	}
	for _, l := range lanes {
		switch l.breaker.State(now) {
		case limiter.Open:
			s.Open++
		case limiter.HalfOpen:
			s.HalfOpen++
		}
	}
	return s
}

// inLine returns all lanes, in a deterministic order.
func (m *Machine) inLine() []*lane {
	lanes := make([]*lane, 0, len(m.lanes))
	for l := m.idle.first; l != nil; l = l.next {
		lanes = append(lanes, l)
	}
	return lanes
}

// RunStatus is a picture of one run, also where others share its lanes.
type RunStatus struct {
	Counters Counters
	Total    int       // items that are to come in all, by the run's config; 0: unknown
	Held     int       // its items that wait
	Parked   int       // of these, after a refusal of their lane
	Delayed  int       // of these, for themselves
	Paused   bool      // it is to be given nothing until it is resumed
	FirstDue time.Time // when the first delayed one may go again; zero: there is none

	Bound       Bound     // what holds it back
	Ledger      Ledger    // its time by what held it back
	InFlight    int       // its calls under way
	Oldest      time.Time // when the one that left first did; zero: there is none
	Concurrency int       // its ceiling on calls in flight, or that of all runs together if that is less
	InputEnded  bool      // nothing more will be offered
	Money       Spending  // against its budget; zero: it has none
}

// Done returns the number of the run's items that have ended, in whatever way.
func (s RunStatus) Done() uint64 { return s.Counters.Settled + s.Counters.Released }

// RunStatus takes a picture of one run; it returns the zero one if the run is not open.
func (m *Machine) RunStatus(id RunID) RunStatus {
	r := m.runs[id]
	if r == nil {
		return RunStatus{}
	}
	s := RunStatus{
		Counters: r.counters(), Total: r.cfg.Total, Held: r.waiting, Parked: r.parked, Delayed: r.delayed, FirstDue: r.firstDue(), Paused: r.paused,
		Bound: r.bound(), Ledger: r.ledgerAt(m.now), Concurrency: m.ceiling(r), InputEnded: r.inputEnded,
	}
	if r.purse != nil {
		s.Money = r.purse.Spending
	}
	s.Oldest, s.InFlight = r.flights.oldest()
	return s
}

// firstDue returns when the first of the run's delayed items may go again; zero: none is delayed.
// It visits each open pool, so it serves only pictures.
func (r *run) firstDue() (first time.Time) {
	if r.delayed == 0 {
		return first
	}
	for _, p := range r.opened {
		if it := p.delayed.top(); it != nil && (first.IsZero() || it.due.Before(first)) {
			first = it.due
		}
	}
	return first
}

// WaitingOf returns the number of a run's items that wait in the machine; 0 if the run is not
// open.
func (m *Machine) WaitingOf(id RunID) int {
	if r := m.runs[id]; r != nil {
		return r.waiting
	}
	return 0
}

// RunCounters returns the counters of one run; they are zero if the run is not open.
func (m *Machine) RunCounters(id RunID) Counters {
	if r := m.runs[id]; r != nil {
		return r.counters()
	}
	return Counters{}
}

func busier(a, b *lane) int {
	return cmp.Or(
		cmp.Compare(b.inFlight+int(b.parked+b.delayed), a.inFlight+int(a.parked+a.delayed)),
		cmp.Compare(b.counts[calls], a.counts[calls]),
		cmp.Compare(a.name, b.name),
	)
}

// status takes a picture of the lane. It visits each pool and each delayed item of the lane, so it
// serves only pictures.
func (l *lane) status(now time.Time) LaneStatus {
	v := l.law.View(now, l.nextCost())
	s := LaneStatus{
		Name: l.name, Phase: l.phase, Reason: l.reason, Cause: l.cause,
		Until: l.alarmAt(), Epoch: l.epoch, Wave: int(l.wave), Rate: l.allowed(&v),
		InFlight: l.inFlight, Parked: int(l.parked), Delayed: int(l.delayed),
		Breaker: l.breaker.State(now), Failures: l.breaker.FailuresInRow(),
		Latency: l.latency.Mean(), P95: l.latency.P95(), Errors: v.Errors, Slowed: l.law.Slowed(now),
		Counters: l.counts.counters(), View: v,
		Level: Levels{
			Requests:     v.Level(limiter.Requests),
			Tokens:       v.Level(limiter.Tokens),
			InputTokens:  v.Level(limiter.InputTokens),
			OutputTokens: v.Level(limiter.OutputTokens),
		},
	}
	s.Speed, s.Why, s.Wait = l.holdup(now)
	s.FirstDue, s.LastDue = l.dueSpan()
	s.Local, s.Account = l.cfg.Local, l.cfg.Account
	s.Bound, s.Draw, s.Window = l.currentBound(now), l.averageCost(v.Weight), l.window(now)
	return s
}

// averageCost returns the average cost of the items that wait for the lane. It multiplies their
// estimates of input by weight.
func (l *lane) averageCost(weight float64) (c limiter.Cost) {
	n := 0
	for _, p := range l.pools {
		c = c.Plus(p.costOn(l))
		n += p.waiting.n + p.returned.len() + p.delayed.len() + p.undecided
	}
	if n == 0 {
		return limiter.Cost{}
	}
	items := float64(n)
	return limiter.Cost{Requests: c.Requests / items, Input: weight * c.Input / items, Output: c.Output / items}
}

// window returns the bound on calls in flight, by the user's word and by the law's; 0: only the
// run's own bound holds.
func (l *lane) window(now time.Time) int {
	n := l.law.Window(now)
	if w := l.cfg.Window; w > 0 && (n == 0 || w < n) {
		n = w
	}
	return n
}

// dueSpan returns when the first and the last of the lane's delayed items may go again; zero: none
// is delayed. It visits each of them, so it serves only pictures.
func (l *lane) dueSpan() (first, last time.Time) {
	if l.delayed == 0 {
		return first, last
	}
	for _, p := range l.pools {
		for _, it := range p.delayed.items {
			if it.lane != l {
				continue
			}
			if first.IsZero() || it.due.Before(first) {
				first = it.due
			}
			last = latest(last, it.due)
		}
	}
	return first, last
}

// belief returns the law's belief in words. The plain law believes in a rate, which every
// report of the lane shows anyway, so its belief is empty.
func (l *lane) belief(v *limiter.View) string {
	if l.cfg.Law != limiter.Model {
		return ""
	}
	return v.String()
}

// allowed returns the rate at which calls may leave now, in calls per second.
func (l *lane) allowed(v *limiter.View) float64 {
	if l.phase == Cooling || l.phase == Stopped {
		return 0
	}
	return v.Most
}

// maxPoolsAsked bounds the pools searched for the next call where none sleeps: a lane may have
// thousands, all of them idle.
const maxPoolsAsked = 16

// nextCost returns the cost of the lane's next call. If none is in sight, it is that of one bare
// request.
func (l *lane) nextCost() limiter.Cost {
	if p := l.line.first(); p != nil {
		if it := p.head(); it != nil {
			return l.charge.Of(it.Cost)
		}
	}
	for _, p := range l.pools[:min(len(l.pools), maxPoolsAsked)] {
		if it := p.head(); it != nil {
			return l.charge.Of(it.Cost)
		}
	}
	return limiter.Cost{Requests: 1}
}

// holdup returns what the next call of the lane would wait for, and for how long.
func (l *lane) holdup(now time.Time) (Speed, string, time.Duration) {
	switch l.phase {
	case Cooling, Stopped:
		return ServerThrottled, l.reason.String(), max(0, l.alarmAt().Sub(now))
	case Probing:
		return ServerThrottled, "probe", 0
	}
	if l.full(now) {
		return ClientThrottled, "window", 0
	}
	wait, by := l.law.Wait(now, l.nextCost())
	if wait == limiter.UntilNotified { // time alone decides nothing
		return ClientThrottled, by.Why(), 0
	}
	if foreseer, foresees := l.law.(limiter.Foreseer); foresees && wait > 0 {
		wait = foreseer.WaitInAll(now, l.nextCost())
	}
	switch {
	case l.phase == Ramping:
		return ServerThrottled, "ramp", wait
	case wait > 0:
		return ClientThrottled, by.Why(), wait
	}
	return FullSpeed, "", 0
}

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

// counters returns the counts by name, for people and programs outside.
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

// count adds one event of a kind to the totals, and to its lane and its run. An event of a lane as
// a whole names no run: each run that draws on the lane reads it from the lane's counts.
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
		p.settleCounts()
	}
	return r.counts.counters()
}

// settleCounts adds the events of the pool's lanes to its run, as far as they were not counted yet.
func (p *pool) settleCounts() {
	for i, l := range p.lanes {
		now := l.counts.laneWide()
		if p.seats == nil && now == [laneWide]uint64{} {
			continue
		}
		seat := p.runSeatOn(i)
		for k := range now {
			p.run.counts[int(cooldowns)+k] += now[k] - seat.seenCounts[k]
		}
		seat.seenCounts = now
	}
}

// A Bound holds a run, or a lane, back at one moment; see [limiter.Bound].
type Bound = limiter.Bound

// The bounds, and their number; what each means stands at the one of package limiter.
const (
	BoundNone         = limiter.BoundNone
	BoundRequests     = limiter.BoundRequests
	BoundTokens       = limiter.BoundTokens
	BoundInputTokens  = limiter.BoundInputTokens
	BoundOutputTokens = limiter.BoundOutputTokens
	BoundSearch       = limiter.BoundSearch
	BoundTrial        = limiter.BoundTrial
	BoundErrors       = limiter.BoundErrors
	BoundWindow       = limiter.BoundWindow
	BoundConcurrency  = limiter.BoundConcurrency
	BoundCooldown     = limiter.BoundCooldown
	BoundOverload     = limiter.BoundOverload
	BoundBreaker      = limiter.BoundBreaker
	BoundRecovery     = limiter.BoundRecovery
	BoundBackoff      = limiter.BoundBackoff
	BoundInput        = limiter.BoundInput
	BoundPaused       = limiter.BoundPaused
	BoundDraining     = limiter.BoundDraining
	BoundStopped      = limiter.BoundStopped
	BoundTail         = limiter.BoundTail
	BoundUnanswered   = limiter.BoundUnanswered
	BoundSlept        = limiter.BoundSlept
	BoundBudget       = limiter.BoundBudget

	Bounds = limiter.Bounds
)
