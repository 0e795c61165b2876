package permit

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A Law is the law of one lane of one worker: a job under a limit. It is its own maker, so that it goes into the lane's
// config as it is:
//
//	machine.LaneConfig{Maker: permit.New(worker, job, limit)}
//
// The lane's owner makes every call to it. Messages to it, *Give and *Cool, come by machine.Told. Its own message,
// *Ask, is among machine.Ready.Words. A lane that is forgotten and used again goes on with the same law and its
// numbers.
//
// Bounds: permits in hand are those asked for, at most [MaxPermits]. Unheard reports are at most two for each call that
// left, and no call leaves while the keeper hears nothing.
type Law struct {
	limiter.Unlimited
	worker, job, limit string

	epoch    uint64 // the highest epoch of a keeper that was heard
	wave     uint64 // that keeper's latest wave
	got      Number // the latest permit of that keeper that arrived
	answered bool   // the provider has answered some call
	stopped  bool
	hand     hand
	out      map[uint64]call // calls in flight, by their ticket
	tickets  uint64
	reports  reports
	asks     asks
	latency  float64 // of calls, smoothed, seconds; 0: none has ended
}

// A call is one that left with a permit.
type call struct {
	of     inHand
	cost   Cost
	left   time.Time
	report uint64 // number of the report of its leaving
}

var (
	_ machine.Leader   = (*Law)(nil)
	_ limiter.Maker    = (*Law)(nil)
	_ limiter.Listener = (*Law)(nil)
	_ limiter.Speaker  = (*Law)(nil)
)

// New returns the law of a lane. The worker's name must be new with each life of its process: the keeper ignores an ask
// whose number it has heard before.
func New(worker, job, limit string) *Law {
	return &Law{worker: worker, job: job, limit: limit, out: map[uint64]call{}, reports: reports{first: 1}, asks: asks{flow: flowFirst}}
}

// NewLaw is part of [limiter.Maker]. It returns the law itself: one law leads one lane.
func (l *Law) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return l }

// Wait is part of [limiter.Law]. It returns 0 if a permit in hand covers the call, and else a wait until the next
// message.
func (l *Law) Wait(now time.Time, c limiter.Cost) (time.Duration, limiter.Holdup) {
	if l.hand.find(now, CostOf(c)) >= 0 {
		return 0, limiter.Holdup{}
	}
	return limiter.UntilTold, limiter.Holdup{By: limiter.ByRequests}
}

// ProbeWait is part of [limiter.Law].
func (l *Law) ProbeWait(now time.Time, c limiter.Cost) time.Duration {
	wait, _ := l.Wait(now, c)
	return wait
}

// Sent is part of [limiter.Law]. It takes the smallest permit that covers the call.
//
// The lane's owner asks Wait at the same moment, so there is a permit. The keeper would not know of a call without one,
// and nobody could make it good.
func (l *Law) Sent(now time.Time, c limiter.Cost, beside int) limiter.Ticket {
	cost := CostOf(c)
	i := l.hand.find(now, cost)
	if i < 0 {
		panic("permit: a call leaves without a permit")
	}
	p := l.hand.take(i)
	l.tickets++
	l.out[l.tickets] = call{of: p, cost: cost, left: now, report: l.reports.left(p, cost, now)}
	k := l.Unlimited.Sent(now, c, beside)
	k.Number, k.Probe = l.tickets, p.Probe
	return k
}

const latencyWeight = 0.05 // weight of a new end in the smoothed latency: some twenty calls

// Ended is part of [machine.Leader].
func (l *Law) Ended(now time.Time, k limiter.Ticket, o machine.Outcome) {
	c, known := l.out[k.Number]
	if !known {
		return
	}
	delete(l.out, k.Number)
	if o.Unsent && o.Signal == machine.Nothing && l.back(now, c) {
		return
	}
	took := now.Sub(c.left).Seconds()
	if l.latency == 0 {
		l.latency = took
	}
	l.latency += latencyWeight * (took - l.latency)
	r := Report{Epoch: c.of.epoch, Number: c.of.Number, Cost: c.cost, Ended: OutcomeOf(o)}
	if !l.reports.replace(c.report, r) {
		l.reports.add(r, c.left)
	}
	if o.Signal == machine.Throttled || o.Signal == machine.Overloaded || o.Signal == machine.Exhausted {
		l.asks.urgent = true
		l.drop(now, c.of.epoch, c.of.wave+1) // the keeper will say so if a wave has begun
	}
}

// drop gives up the permits of older waves, or older keepers, than those given.
func (l *Law) drop(now time.Time, epoch, wave uint64) {
	for _, p := range l.hand.dropOlder(epoch, wave) {
		l.unused(now, p)
	}
}

// expire gives up the permits that are no longer good.
func (l *Law) expire(now time.Time) {
	for _, p := range l.hand.dropExpired(now) {
		l.unused(now, p)
	}
}

// unused reports a permit that is given up. If the keeper may have heard that a call left with it, the report says that
// the call ended unsent.
func (l *Law) unused(now time.Time, p inHand) {
	r := Report{Epoch: p.epoch, Number: p.Number, Unused: true}
	switch {
	case p.report == 0:
		l.reports.add(r, now)
	case l.reports.replace(p.report, r):
	default:
		r.Unused, r.Ended = false, OutcomeOf(machine.Outcome{Unsent: true})
		l.reports.add(r, now)
	}
}

// spare gives up permits that came back and that no call waits for. Permits in hand leave later than calls granted
// after them, and the headers of those calls count what has left before. So fewer permits in hand make headers truer.
func (l *Law) spare(now time.Time, waiting int) {
	for _, p := range l.hand.dropBack(waiting) {
		l.unused(now, p)
	}
}

// back returns a permit to the hand if its call was let go before it left, so that the next call may leave with it. A
// chunk that is given up has hundreds of such calls. Each new permit would cost others one, for the time it takes to
// ask and to report. back reports whether the permit is still good. It refuses a probe's permit, as the keeper waits
// for the probe's end.
func (l *Law) back(now time.Time, c call) bool {
	p := c.of
	if p.Probe || p.epoch != l.epoch || p.wave != l.wave || !now.Before(p.until) || len(l.hand.permits) >= MaxPermits {
		return false
	}
	p.report = c.report
	l.hand.add(p)
	return true
}

// View is part of [limiter.Law]: the law knows only whether there is a permit.
func (l *Law) View(now time.Time, c limiter.Cost) limiter.View {
	v := l.Unlimited.View(now, c)
	if wait, _ := l.Wait(now, c); wait > 0 {
		v.Pace = 0
	}
	return v
}
