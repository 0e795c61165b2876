package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Phase shows how a lane deals with its provider's limit.
type Phase uint8

// The phases. A lane starts Flowing.
const (
	Flowing Phase = iota // calls leave as fast as the known limits and the learned rate allow
	Cooling              // nothing leaves
	Probing              // one call at a time leaves, to see whether the refusals are over
	Ramping              // the rate climbs back
	Stopped              // nothing will leave any more: the quota is used up, or the key refused
)

var phaseWords = [...]string{"flowing", "cooling", "probing", "ramping", "stopped"}

func (p Phase) String() string { return phaseWords[p] }

// A Reason is why a lane is in its phase.
type Reason uint8

// The reasons.
const (
	NoReason    Reason = iota
	ByThrottle         // the server said slow down
	ByOverload         // the server said that it is too busy
	ByBreaker          // calls break: the server is taken to be down
	ByTime             // the wait is over
	ByProbe            // a probe was answered, or not refused in time
	ByKnowledge        // the level is known, so there is nothing to probe
	ByRefusal          // the server will serve this lane no more
	ByHand             // a person said so
	ByMemory           // an earlier machine left it so
	ByErrors           // too many calls break while others are answered: it goes slower, in the same phase
	ByAnswers          // they do no more: it goes as fast as before, in the same phase
)

var reasonWords = [...]string{"", "throttled", "overloaded", "breaker", "time", "probe", "level known", "refused for good", "by hand", "remembered", "calls break", "calls are answered"}

func (r Reason) String() string { return reasonWords[r] }

// lane is one quota: the beliefs about it, and the calls under way on it.
//
// Invariants: inEpoch ≤ inFlight; Cooling and Stopped grant nothing; Probing
// grants only while inEpoch is 0; alarm is set while time can change the phase.
//
// The fields that every call touches come first and together: with ten thousand lanes, each is
// cold when its turn comes. Short ones stand next to each other, so that no room is left between
// them.
type lane struct {
	name             string
	law              limiter.Law
	charge           limiter.Charge // by which that law is charged: of its config, when it began
	cfg              *LaneConfig    // shared with other lanes: replaced, and never written to
	phase            Phase
	reason           Reason
	cooldownReason   Reason        // of the latest cooldown
	hasChargeRule    bool          // charge is a rule of its own
	restored         bool          // it began with an earlier machine's memory
	refusedElsewhere bool          // a call of another machine was refused here, so somebody is there
	answered         bool          // a call was answered as hoped, ever: here, or by an earlier machine
	bound            Bound         // what held back the latest call that asked
	delay            time.Duration // and for how long; 0: it was let go
	slowed           float32       // the latest reported part of its pace that is left because calls break; 0: all of it
	blocked          bool          // the law held a call back since the latest one left
	hung             bool          // its calls are overdue: one more leaves at a time, to see
	broke            bool          // a call broke since the latest one was answered, and was not just refused
	unclear          uint8         // refusals in a row that may mean a limit by the day; no more are counted than it takes
	epoch            uint64        // rises with each cooldown: calls that left before it are old news
	lawEpoch         uint64        // the epoch in which its law did: calls that left before it were charged to another
	inFlight         int           // calls of any epoch
	answers          int           // calls answered, ever: 0 means that nothing is known
	inEpoch          int32         // calls of this one
	inFlightAtEnd    int32         // calls that were under way at ended

	pools      []*pool
	onePool    [1]*pool  // backing array of pools while there is only one
	line       *line     // the pools that sleep here; nil: none ever did
	prev, next *lane     // by time of use
	used       time.Time // latest grant or end
	lastEnd    time.Time // latest end, or when calls were last marked that have left since: see mark
	counts     tally
	latency    latency // of answers
	breaker    limiter.Breaker

	cause             error     // of Stopped; while the breaker is not closed, what opened it
	until             time.Time // the end of Cooling
	passAt            time.Time // when a probe that was not refused has passed; zero: it must be answered
	parked            int32     // items whose latest call was refused here
	delayed           int32     // items whose latest call broke here, or was refused here alone
	wave              int32     // calls that met the refusals of this cooldown
	poolsWithNextTier int32     // pools that have a tier after this lane's
	vouchedEpoch      uint64    // the epoch that a person began: older refusals for good are void,
	vouchedAt         time.Time // and so are those of other machines' calls that left before
	refusal           limiter.MeanLatency
	illness           *illness // the latest; nil: it was never ill
	wait              *wait    // its long waits; nil: it never had to wait
	outside           *outside // its law's links with the outside; nil: there are none
	account           *account // whose fate it shares; nil: none's
	blame             *blame   // its failures, and whose they are; nil: there was none
	silence           *silence // how its calls break, if it was never heard; nil: none did, or it was
	alarm             alarm
}

// newLane makes a lane of which nothing is known, with the law and the breaker of its config.
func (m *Machine) newLane(now time.Time, name string) *lane {
	l := &lane{name: name, cfg: m.laneConfig(name), used: now}
	l.pools = l.onePool[:0]
	l.alarm = alarm{pos: -1, lane: l}
	l.beginBreaker()
	m.beginLaw(now, l)
	return l
}

func (l *lane) beginBreaker() {
	breaker := l.cfg.Breaker
	if l.cfg.Law == limiter.Model && breaker == (limiter.BreakerConfig{}) {
		breaker = limiter.BreakerConfig{OpenFor: ModelOpen, MaxOpen: ModelOpen}
	}
	l.breaker = limiter.NewBreaker(breaker)
}

func (m *Machine) beginLaw(now time.Time, l *lane) {
	l.law = m.newLaw(now, l)
	l.blocked, l.bound, l.slowed, l.lawEpoch = false, BoundNone, 0, l.epoch
	l.outside = outsideOf(l)
	l.recharge(l.cfg.Charge)
}

// laneNamed returns the lane of that name. If there is none, it makes the lane and recalls what an
// earlier machine knew of it.
func (m *Machine) laneNamed(now time.Time, name string) *lane {
	l := m.lanes[name]
	if l == nil {
		l = m.newLane(now, name)
		l.answered = m.cfg.AnsweredBefore
		m.lanes[name] = l
		m.idle.push(l)
		m.recallLane(now, l)
		m.joinAccount(l)
		m.stopWithAccount(now, l)
	}
	return l
}

// admit returns the time until a call of the item may leave for the pool. 0 is now; forever means
// until something happens. It notes in bound what holds the call back.
func (l *lane) admit(now time.Time, p *pool, it *Item) time.Duration {
	switch {
	case l.phase == Cooling || l.phase == Stopped:
		l.bound = l.phaseBound()
		return forever // the lane's own alarm, or nothing, ends this
	case l.phase == Probing && (l.inEpoch > 0 || l.full(now)):
		l.bound = BoundRecovery
		return forever // the end of a call ends this
	case !l.hung && !l.full(now), l.inFlight > 0 && now.Sub(l.lastEnd) >= minOverdue && l.looksHung(now):
	case l.hung:
		l.bound = BoundUnanswered
		return l.lastEnd.Add(l.overdueAfter()).Sub(now)
	default:
		l.bound = BoundWindow
		return forever // likewise
	}
	cost := l.charge.Of(it.Cost)
	l.law.Remaining(l.remaining(p))
	l.law.Tick(now, l.blocked)
	var wait time.Duration
	var by Bound
	if l.phase == Probing {
		wait = l.law.ProbeWait(now, cost)
	} else {
		wait, by = l.law.Wait(now, cost)
	}
	if l.outside != nil {
		l.outside.resting = by == BoundCooldown
	}
	if wait > 0 {
		l.blocked, l.bound = true, l.boundOn(by)
	} else {
		l.bound = BoundNone
	}
	return wait
}

// boundOn returns the bound of a call that waits because of what its law names.
func (l *lane) boundOn(by Bound) Bound {
	if l.phase == Probing || l.phase == Ramping {
		return BoundRecovery
	}
	return by.Booked()
}

// remaining returns the cost of all calls still to come on the lane; zero if that is not known.
func (l *lane) remaining(p *pool) (c limiter.Cost) {
	if p.run.inputEnded && len(l.pools) == 1 && len(p.lanes) == 1 {
		c = p.cost
	}
	return c
}

// full reports whether as many calls are in flight as the user's window, or the law's, allows.
func (l *lane) full(now time.Time) bool {
	if l.inFlight == 0 {
		return false // no window is smaller than one call
	}
	return over(l.inFlight, l.cfg.Window) || over(l.inFlight, l.law.Window(now))
}

func over(n, window int) bool { return window > 0 && n >= window }

// usable reports whether the lane is well, if perhaps busy.
func (l *lane) usable() bool { return l.phase == Flowing || l.phase == Ramping }

// noteDeparture books that a call of the item leaves on the lane: with its law, with a probe, and
// in its counts.
func (m *Machine) noteDeparture(now time.Time, l *lane, it *Item) {
	if l.slowed > 0 {
		m.reportPace(now, l)
	}
	if l.inFlight == 0 {
		l.lastEnd, l.inFlightAtEnd = now, 0
	} else if now.Sub(l.lastEnd) >= minOverdue {
		l.markInFlight(now)
	}
	it.ticket = l.law.Sent(now, l.charge.Of(it.Cost), l.inFlight)
	l.blocked = false
	if l.phase == Probing {
		m.probe(now, l)
	}
	if l.outside != nil {
		it.Probe = it.Probe || it.ticket.Probe
		m.scheduleSay(l)
	}
	l.inFlight++
	l.inEpoch++
	m.idle.touch(l, now)
}

// alarmAt returns when time alone will change the phase; zero: it will not.
func (l *lane) alarmAt() time.Time {
	if l.alarm.pos < 0 {
		return time.Time{}
	}
	return l.alarm.at
}

// drawOn enters the pool among those that draw on the i-th of its lanes.
func (p *pool) drawOn(i int) {
	l := p.lanes[i]
	if counts := l.counts.laneWide(); len(l.pools) > 0 || counts != [laneWide]uint64{} {
		s := p.poolSeatOn(i)
		s.poolIndex = int32(len(l.pools))
		if other := p.run.poolOn(l); other != nil {
			s.seat = other.runSeatOn(slices.Index(other.lanes, l))
		} else {
			p.runSeatOn(i).seenCounts = counts
		}
	}
	l.pools = append(l.pools, p)
	if len(l.pools) > len(l.onePool) {
		l.onePool[0] = nil // they have moved, and it would keep a run alive that is over
	}
	if p.tiers.hasNextTier(i) {
		l.poolsWithNextTier++
	}
}

// stopDrawingOn removes the pool from those that draw on the i-th of its lanes. The lane's last
// pool takes its place in that list.
func (p *pool) stopDrawingOn(i int) {
	l, at, last := p.lanes[i], 0, len(p.lanes[i].pools)-1
	if p.seats != nil {
		at = int(p.seats[i].poolIndex)
	}
	if moved := l.pools[last]; moved != p {
		moved.poolSeatOn(slices.Index(moved.lanes, l)).poolIndex = int32(at)
		l.pools[at] = moved
	}
	l.pools[last] = nil
	l.pools = l.pools[:last]
	if p.tiers.hasNextTier(i) {
		l.poolsWithNextTier--
	}
}

// nextEpoch turns all calls in flight into old news.
func (l *lane) nextEpoch() {
	l.epoch++
	l.inEpoch = 0
	l.passAt = time.Time{}
}

// defineLane sets the config of a lane. A lane that is in use takes over the limits, the window and
// the ramp, and keeps its lessons. If the new config names another law, the lane begins afresh, as
// no law can use the lessons of another.
func (m *Machine) defineLane(now time.Time, name string, c LaneConfig) {
	m.defined[name] = &c
	l := m.lanes[name]
	if l == nil {
		return
	}
	old := l.cfg
	l.cfg = &c
	m.joinAccount(l)
	if c.Law != old.Law || c.Local != old.Local || c.Maker != old.Maker {
		m.changeLaw(now, l)
	} else {
		l.law.SetLimits(now, c.Limits)
		m.setRamp(now, l, c.Ramp)
	}
	m.stopWithAccount(now, l)
	m.wake(l)
}

// changeLaw gives a lane the law of its config. Its epoch rises, because the earlier law let the
// calls in flight go. What holds the lane back stays (a wait, an open breaker, a stop): another law
// does not mean that the server is well. If the new law leads the lane, only a stop stays: the law
// must know the rest.
func (m *Machine) changeLaw(now time.Time, l *lane) {
	if l.phase == Probing {
		m.abandonProbe(now, l)
	}
	l.nextEpoch()
	m.cancelSays(l)
	if l.outside != nil && l.illness != nil && l.usable() {
		l.illness.since = time.Time{} // it rested by the word of that law
	}
	m.beginLaw(now, l)
	switch {
	case l.remote() && l.phase != Stopped:
		m.revive(now, l)
		return
	case l.phase == Ramping:
		m.climb(now, l, ByHand)
		return
	}
	reason := l.reason
	m.enter(now, l, l.phase, ByHand)
	l.reason = reason // the reason for its phase has not changed
}

// setRamp has a lane climb in another shape, at once if it is climbing.
func (m *Machine) setRamp(now time.Time, l *lane, c limiter.RampConfig) {
	if until := l.law.SetRamp(now, c); l.phase == Ramping && !until.IsZero() {
		m.alarms.set(&l.alarm, until)
	}
}

// setLimits gives a lane new limits. An empty name stands for all lanes, those to come included.
func (m *Machine) setLimits(now time.Time, name string, limits limiter.Limits) {
	if name == "" {
		usual := *m.usual // grants show the old one to workers
		usual.Limits = limits
		m.usual = &usual
		known := maps.Clone(m.defined)
		for name := range m.lanes {
			known[name] = nil
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			m.setLimits(now, name, limits)
		}
		return
	}
	c := *m.laneConfig(name)
	c.Limits = limits
	m.defined[name] = &c
	if l := m.lanes[name]; l != nil {
		l.cfg = &c
		l.law.SetLimits(now, limits)
		m.wake(l)
	}
}

func (m *Machine) laneConfig(name string) *LaneConfig {
	if c := m.defined[name]; c != nil {
		return c
	}
	return m.usual
}

// resetLane lets a lane flow at once, with nothing held against it. It also drops what an earlier
// machine remembered of the lane. The epoch rises, so that calls still in flight cannot close the
// lane again with old news.
func (m *Machine) resetLane(now time.Time, name string) {
	delete(m.memory, name)
	m.vouch(now, name)
	l := m.lanes[name]
	if l == nil {
		return
	}
	l.nextEpoch()
	if !l.remote() || l.fault() != nil {
		m.cancelSays(l)
		m.beginLaw(now, l)
	}
	m.revive(now, l)
	l.freeItems()
	m.scheduleSay(l)
}

// freeItems ends the waits of items that wait for themselves after a call on the lane.
func (l *lane) freeItems() {
	for _, p := range l.pools {
		p.freeFrom(l)
	}
	if l.wait != nil {
		l.wait.ownUntil = time.Time{}
	}
}

// forgive clears what the lane itself holds against its server. Its counts and measurements stay.
func (l *lane) forgive() {
	l.vouchedEpoch = l.epoch
	l.broke, l.unclear, l.restored, l.hung = false, 0, false, false
	l.cause, l.until, l.wave = nil, time.Time{}, 0
	l.restartSilence()
	l.cooldownReason = NoReason
	if l.illness != nil {
		*l.illness = illness{}
	}
	l.wait.end()
}

// phaseBound returns the bound of a lane whose phase lets no call go.
func (l *lane) phaseBound() Bound {
	switch {
	case l.phase == Stopped:
		return BoundStopped
	case l.reason == ByOverload:
		return BoundOverload
	case l.reason == ByBreaker:
		return BoundBreaker
	}
	return BoundCooldown
}

// currentBound returns which of the lane's own bounds holds its next call back. It changes nothing.
func (l *lane) currentBound(now time.Time) Bound {
	switch {
	case l.phase == Cooling || l.phase == Stopped:
		return l.phaseBound()
	case l.phase == Probing:
		if l.inEpoch > 0 || l.full(now) || l.law.ProbeWait(now, l.nextCost()) > 0 {
			return BoundRecovery
		}
		return BoundNone
	case l.hung:
		return BoundUnanswered
	case l.full(now):
		return BoundWindow
	}
	if wait, on := l.law.Wait(now, l.nextCost()); wait > 0 {
		return l.boundOn(on)
	}
	return BoundNone
}
