package permit

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A Law is the law of one lane of one worker: a job under a limit. It is its own maker, so that it goes into the lane's
// config as it is:
//
//	machine.LaneConfig{Maker: permit.New(worker, job, limit)}
//
// The lane's owner makes every call to it. Messages to it, *Give and *Cool, come by machine.Delivered. Its own message,
// *Ask, is among machine.Ready.Words. A lane that is forgotten and used again goes on with the same law and its
// numbers.
//
// Bounds: permits in hand are those asked for, at most [MaxPermits]. Unheard reports are at most two for each call that
// left, and no call leaves while the keeper hears nothing.
type Law struct {
	limiter.Unlimited
	worker, job, limit string
	weight             float64 // as in [Ask]

	epoch    uint64 // the highest epoch of a keeper that was heard
	wave     uint64 // that keeper's latest wave
	got      Number // the latest permit of that keeper that arrived
	answered bool   // the provider has answered some call
	stopped  bool
	rests    bool // since the wave, no call was let go but probes
	hand     hand
	out      map[uint64]call // calls in flight, by their ticket
	tickets  uint64
	reports  reports
	asks     asks
	latency  float64 // of calls, smoothed, seconds; 0: none has ended
	pace     Pace
}

// Pace is a word to a law: how fast its calls are likely to leave. It is for people and forecasts, and lets no call leave.
type Pace struct {
	PerSecond float64       // the lane's share of what the limit lets through; 0: not known, or nothing leaves now
	Searched  bool          // that is only the pace of a search for the limit
	By        limiter.Bound // what gives that
	Hold      time.Time     // nothing leaves before; zero: something may
	Good      time.Time     // it says nothing any more from then on
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
	return &Law{worker: worker, job: job, limit: limit, out: map[uint64]call{}, reports: reports{first: 1}, asks: asks{flow: firstFlow}}
}

// NewWeighed returns the law of a lane whose calls are no job's. Its asks say the weight of their holder.
func NewWeighed(worker, holder, limit string, weight float64) *Law {
	l := New(worker, holder, limit)
	l.weight = weight
	return l
}

// NewLaw is part of [limiter.Maker]. It returns the law itself: one law leads one lane.
func (l *Law) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return l }

// Wait is part of [limiter.Law]. It returns 0 if a permit in hand covers the call, and else a wait until the next
// message. From a wave until permits come that are no probe's, it says that the limit cools.
func (l *Law) Wait(now time.Time, c limiter.Cost) (wait time.Duration, by limiter.Bound) {
	if l.hand.find(now, CostOf(c)) < 0 {
		wait, by = limiter.UntilNotified, limiter.BoundRequests
	}
	if l.rests {
		by = limiter.BoundCooldown
	}
	return wait, by
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

// Ended is part of [machine.Leader]. It reports the end of a call to the keeper. The permit of a call that did not leave
// returns to the hand if it is still good.
func (l *Law) Ended(now time.Time, k limiter.Ticket, o machine.Outcome) {
	c, known := l.out[k.Number]
	if !known {
		return
	}
	delete(l.out, k.Number)
	if o.Unsent && o.Signal == machine.Nothing && l.putBack(now, c) {
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
		l.reportUnused(now, p)
	}
}

// expire gives up the permits that are no longer good.
func (l *Law) expire(now time.Time) {
	for _, p := range l.hand.dropExpired(now) {
		l.reportUnused(now, p)
	}
}

// reportUnused reports a permit that is given up. If the keeper may have heard that a call left with it, the report says that
// the call ended unsent.
func (l *Law) reportUnused(now time.Time, p inHand) {
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

// dropSpare gives up permits that came back and that no call waits for. Permits in hand leave later than calls granted
// after them, and the headers of those calls count what has left before. So fewer permits in hand make headers truer.
func (l *Law) dropSpare(now time.Time, waiting int) {
	for _, p := range l.hand.dropReturned(waiting) {
		l.reportUnused(now, p)
	}
}

// putBack returns a permit to the hand if its call was let go before it left, so that the next call may leave with it. A
// chunk that is given up has hundreds of such calls. Each new permit would cost others one, for the time it takes to
// ask and to report. back reports whether the permit is still good. It refuses a probe's permit, as the keeper waits
// for the probe's end.
func (l *Law) putBack(now time.Time, c call) bool {
	p := c.of
	if p.Probe || p.epoch != l.epoch || p.wave != l.wave || !now.Before(p.until) || len(l.hand.permits) >= MaxPermits {
		return false
	}
	p.report = c.report
	l.hand.add(p)
	return true
}

// View is part of [limiter.Law]: the law knows only whether there is a permit, and the latest [Pace].
func (l *Law) View(now time.Time, c limiter.Cost) limiter.View {
	v := l.Unlimited.View(now, c)
	if p := &l.pace; now.Before(p.Good) {
		v.Hold = p.Hold // also without a pace: a limit that rests has none
		if p.PerSecond > 0 {
			v.Rate, v.Binds = p.PerSecond, limiter.PaceBound{By: p.By, Pace: p.PerSecond}
			if p.Searched {
				v.Search = p.PerSecond
			}
		}
	}
	if wait, _ := l.Wait(now, c); wait > 0 {
		v.Pace = 0
	}
	return v
}

// Hear is part of [limiter.Listener]. It takes *[Give], *[Cool] and *[Pace]. It ignores a message for
// another lane, of an earlier keeper, or that makes no sense.
func (l *Law) Hear(now time.Time, payload any) (r limiter.Reply) {
	switch w := payload.(type) {
	case *Give:
		if w.Validate() == nil && w.Worker == l.worker && w.Job == l.job && w.Limit == l.limit && w.Epoch >= l.epoch {
			return l.takeGive(now, w)
		}
	case *Cool:
		if w.Validate() == nil && w.Limit == l.limit && w.Epoch >= l.epoch {
			return l.takeCool(now, w)
		}
	case *Pace:
		l.pace = *w
	}
	return r
}

// followKeeper begins to obey a later keeper. Permits of an earlier one stay in hand.
func (l *Law) followKeeper(epoch uint64) {
	if epoch > l.epoch {
		l.epoch, l.wave, l.got = epoch, 0, 0
	}
}

// takeGive takes the permits of a give. It reports a permit as unused if it is void, or no longer
// good, or there is no room for it. A permit whose number is not above the latest one changes
// nothing.
func (l *Law) takeGive(now time.Time, g *Give) (r limiter.Reply) {
	l.followKeeper(g.Epoch)
	l.answered = l.answered || g.Answered
	r.Answered = l.answered
	if g.Wave > l.wave {
		l.rests = l.rests || l.wave > 0 // the word of this wave was lost
		r.Resume = l.newWave(now, g.Wave)
	}
	until := l.heard(now, g.Heard)
	for _, p := range g.Permits {
		if p.Number <= l.got {
			continue // it is doubled, or late: nothing shows any more whether it was in hand
		}
		l.got = p.Number
		l.asks.unmet--
		l.asks.came++
		x := inHand{Permit: p, epoch: g.Epoch, wave: g.Wave, until: until}
		if g.Wave < l.wave || !now.Before(until) || len(l.hand.permits) >= MaxPermits {
			l.reportUnused(now, x)
			continue
		}
		l.hand.add(x)
		l.rests = l.rests && p.Probe
	}
	return r
}

// heard notes that the keeper heard an ask. It returns the time until which the ask's permits
// are good; the zero time if that ask is too old.
func (l *Law) heard(now time.Time, seq uint64) (until time.Time) {
	a := &l.asks
	for i := range a.sent {
		s := &a.sent[i]
		if s.seq != seq {
			continue
		}
		l.reports.heard(s.report)
		if way := now.Sub(s.at).Seconds(); s.seq == a.seq {
			if a.roundTrip == 0 {
				a.roundTrip = way
			}
			a.roundTrip += roundTripWeight * (way - a.roundTrip)
		}
		return s.at.Add(Life)
	}
	return time.Time{}
}

// newWave voids the permits of older waves. It reports whether a stopped lane resumes.
func (l *Law) newWave(now time.Time, wave uint64) (resume bool) {
	l.wave = wave
	l.drop(now, l.epoch, wave)
	resume, l.stopped = l.stopped, false
	return resume
}

// takeCool voids the permits of older waves, and stops the lane or resumes it. It ignores an older
// wave, and a message that says nothing new.
func (l *Law) takeCool(now time.Time, c *Cool) (r limiter.Reply) {
	later := c.Epoch > l.epoch
	l.followKeeper(c.Epoch)
	if c.Wave < l.wave || c.Wave == l.wave && !later && (c.Stopped == nil) == !l.stopped {
		return r // it is old, or was heard before
	}
	l.rests = c.Wave > l.wave && c.For > 0
	r.Resume = l.newWave(now, c.Wave)
	if c.Stopped != nil {
		l.stopped, r = true, limiter.Reply{Stop: c.Stopped}
	}
	return r
}

// A hand holds the permits that may be used, the smallest first.
type hand struct {
	permits []inHand
	matched []bool // for match: the permits that are spoken for
}

type inHand struct {
	Permit
	epoch, wave uint64
	until       time.Time // the permit is good before this
	report      uint64    // number of an earlier report that a call left with it; 0: none
}

// size orders permits. A permit that covers a call is in no part smaller than it, so the first
// that covers it is the smallest. Calls differ from each other in their tokens.
func (c Cost) size() float64 { return c.Input + c.Output }

// covers reports whether a permit for c is one for d.
func (c Cost) covers(d Cost) bool {
	return max(1, c.Requests) >= max(1, d.Requests) && c.Input >= d.Input && c.Output >= d.Output
}

func (h *hand) add(p inHand) {
	i, _ := slices.BinarySearchFunc(h.permits, p, bySize)
	h.permits = slices.Insert(h.permits, i, p)
}

// bySize puts the older of two permits of a size first: it expires first.
func bySize(a, b inHand) int {
	if n := cmp.Compare(a.Cost.size(), b.Cost.size()); n != 0 {
		return n
	}
	if n := a.until.Compare(b.until); n != 0 {
		return n
	}
	return cmp.Compare(a.Number, b.Number)
}

// find returns the index of the smallest good permit that covers a call; −1 if there is none.
func (h *hand) find(now time.Time, c Cost) int {
	from, _ := slices.BinarySearchFunc(h.permits, c, func(p inHand, c Cost) int { return cmp.Compare(p.Cost.size(), c.size()) })
	for i := from; i < len(h.permits); i++ {
		if p := &h.permits[i]; now.Before(p.until) && p.Cost.covers(c) {
			return i
		}
	}
	return -1
}

func (h *hand) take(i int) inHand {
	p := h.permits[i]
	h.permits = slices.Delete(h.permits, i, i+1)
	return p
}

func (h *hand) dropOlder(epoch, wave uint64) []inHand {
	return h.drop(func(p *inHand) bool { return p.epoch < epoch || p.epoch == epoch && p.wave < wave })
}

// dropReturned takes out all but keep of the permits that came back.
func (h *hand) dropReturned(keep int) []inHand {
	return h.drop(func(p *inHand) bool {
		if p.report > 0 {
			keep--
		}
		return p.report > 0 && keep < 0
	})
}

func (h *hand) dropExpired(now time.Time) []inHand {
	return h.drop(func(p *inHand) bool { return !now.Before(p.until) })
}

// drop takes out the permits for which gone is true, oldest number first.
func (h *hand) drop(gone func(*inHand) bool) (out []inHand) {
	kept := h.permits[:0]
	for i := range h.permits { // this runs at each decision, and a permit is seldom gone
		if p := &h.permits[i]; gone(p) {
			out = append(out, *p)
		} else {
			kept = append(kept, *p)
		}
	}
	h.permits = kept
	slices.SortFunc(out, func(a, b inHand) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// firstExpiry returns the time at which the first permit in hand expires; zero: there is none.
func (h *hand) firstExpiry() (first time.Time) {
	for i := range h.permits {
		if at := h.permits[i].until; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// match starts to match calls with permits, in the order in which the calls would leave. It
// returns the number of permits.
func (h *hand) match() int {
	h.matched = append(h.matched[:0], make([]bool, len(h.permits))...)
	return len(h.permits)
}

// covers reports whether a permit that is not spoken for covers the next call, and reserves it.
func (h *hand) covers(c Cost) bool {
	from, _ := slices.BinarySearchFunc(h.permits, c, func(p inHand, c Cost) int { return cmp.Compare(p.Cost.size(), c.size()) })
	for i := from; i < len(h.permits); i++ {
		if !h.matched[i] && h.permits[i].Cost.covers(c) {
			h.matched[i] = true
			return true
		}
	}
	return false
}
