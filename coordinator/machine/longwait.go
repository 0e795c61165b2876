package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A LongWait says that a lane, or an item for itself alone, waits for longer than
// [Config].LongWait. The machine reports it once for each wait.
//
// A lane waits while items wait for it and it lets nothing in: it cools, it is probed, or its
// law holds the next call back with none under way. The wait ends when a call is let in, so a
// thousand probes that fail are one wait. A long line that moves slowly is no such wait, and
// neither are long calls. Nor is a paused run, or a run that has all its calls in flight.
//
// The machine reports it as soon as it is known. That is at once if the lane's cooldown ends,
// or the item is due, later than that; otherwise it is when that time has passed.
type LongWait struct {
	At    time.Time
	Lane  string
	Phase Phase     // of the lane
	Cause Reason    // of the lane's latest cooldown; of an item: ByThrottle, or NoReason after a failure
	Why   string    // the reason to wait, in the words of [LaneStatus].Why; of an item: "backoff", or "refused"
	Since time.Time // when the wait began
	Until time.Time // when time ends it, or lets the lane try again; zero: unknown
	Items int       // that wait for the lane; of an item: that wait for themselves there
	Own   bool      // an item waits for itself, and not the lane
	Item  uint64    // of Own: its number in its run
	Run   RunID     // of Own: that run
}

// wait records the waits of a lane. Most of many lanes never wait, and are spared the room.
type wait struct {
	since    time.Time // when items wait and nothing is let in; zero: that is not so
	reported bool      // this wait was reported as long
	ownUntil time.Time // the end of an item's own wait that was reported as long
}

// mustWait notes that the head of a pool waits for the lanes that it has asked. Those of tiers
// that are not used do not count.
func (m *Machine) mustWait(now time.Time, p *pool, asked int) {
	for i := range asked {
		m.beginWait(now, p.lanes[p.index(i)])
	}
}

// beginWait notes that items may wait for the lane from now on, unless they do already.
func (m *Machine) beginWait(now time.Time, l *lane) {
	if m.cfg.LongWait < 0 || l.wait.underWay() {
		return
	}
	if l.wait == nil {
		l.wait = &wait{}
	}
	l.wait.since, l.wait.reported = now, false
	m.checkWaitsBy(now.Add(m.cfg.LongWait))
	if l.phase == Cooling {
		m.checkWaitsEarly(l)
	}
}

// underWay reports whether a wait is under way.
func (w *wait) underWay() bool { return w != nil && !w.since.IsZero() }

// end ends the wait; a later wait is another.
func (w *wait) end() {
	if w != nil {
		w.since = time.Time{}
	}
}

// checkWaitsEarly has the waits checked at once if the lane's cooldown is known to last long.
func (m *Machine) checkWaitsEarly(l *lane) {
	if w := l.wait; w.underWay() && !w.reported && isLong(m.now, w.since, l.until, m.cfg.LongWait) {
		m.checkWaitsBy(m.now)
	}
}

// endHealthyWait ends the wait of a healthy lane, as one of its calls was let in. A call that was
// under way when the lane cooled ends nothing.
func (l *lane) endHealthyWait() {
	if l.usable() {
		l.wait.end()
	}
}

// isLong reports whether a wait is, or will be, longer than the bound.
func isLong(now, since, until time.Time, bound time.Duration) bool {
	return now.Sub(since) >= bound || until.Sub(since) > bound
}

func (m *Machine) checkWaitsBy(at time.Time) {
	if m.checkWaitsAt.IsZero() || at.Before(m.checkWaitsAt) {
		m.checkWaitsAt = at
	}
}

// checkWaits reports the waits that have become long, and finds out when to look again. It changes
// no decision.
func (m *Machine) checkWaits(now time.Time) {
	if m.checkWaitsAt.IsZero() || m.checkWaitsAt.After(now) {
		return
	}
	m.checkWaitsAt = time.Time{}
	for l := m.idle.first; l != nil; l = l.next {
		if l.wait.underWay() && !l.wait.reported {
			m.checkLaneWait(now, l)
		}
	}
}

// checkLaneWait reports the wait of a lane if it is long by now, or is known to become so. If not,
// it notes when to look again, or ends a wait that nobody has any more.
func (m *Machine) checkLaneWait(now time.Time, l *lane) {
	items, first := l.wantedBy(now)
	switch {
	case items > 0:
	case l.phase == Probing && l.inEpoch > 0: // only the probe waits: its end tells more
		m.checkWaitsBy(now.Add(m.cfg.LongWait))
		return
	case (l.phase == Cooling || l.phase == Probing) && len(l.pools) > 0: // when a full run has room again, nobody asks a lane that is ill
		l.wait.since = now
		m.checkWaitsBy(now.Add(m.cfg.LongWait))
		return
	default:
		l.wait.end()
		return
	}
	since := latest(l.wait.since, first)
	why, until, blocked := l.obstacle(now)
	if !blocked { // it let a call go that is under way, or could: the wait is over, or begins now
		l.wait.since, since = now, now
	}
	if !isLong(now, since, until, m.cfg.LongWait) {
		m.checkWaitsBy(since.Add(m.cfg.LongWait))
		return
	}
	l.wait.reported = true
	m.out.LongWaits = append(m.out.LongWaits, LongWait{
		At: now, Lane: l.name, Phase: l.phase, Cause: l.cooldownReason, Why: why, Since: since, Until: until, Items: items,
	})
}

// wantedBy returns how many items wait for the lane, and since when the first of them may have
// waited. The lane itself may have waited for longer, for items that have gone.
func (l *lane) wantedBy(now time.Time) (items int, since time.Time) {
	for _, p := range l.pools {
		if p.run.paused || !p.run.hasRoom() || !p.couldUse(now, l) {
			continue
		}
		n, first := p.countReady(!l.usable()) // a lane that is well has nothing to do with an item's own wait
		if n == 0 {
			continue
		}
		if from := latest(first, p.run.resumed); items == 0 || from.Before(since) {
			since = from
		}
		items += n
	}
	return items, since
}

// countReady returns how many items wait in the pool, and when the first of them was offered.
// withDelayed includes those that wait for themselves. It visits each item that was called before,
// so it serves only pictures and reports.
func (p *pool) countReady(withDelayed bool) (n int, first time.Time) {
	if it := p.waiting.first; it != nil {
		n, first = p.waiting.n, it.Offered
	}
	count := func(items []*Item) {
		for _, it := range items {
			if n++; n == 1 || it.Offered.Before(first) {
				first = it.Offered
			}
		}
	}
	count(p.returned.items)
	if withDelayed {
		count(p.delayed.items)
	}
	return n, first
}

// couldUse reports whether the pool's next item could go out on the lane.
func (p *pool) couldUse(now time.Time, l *lane) bool {
	i := slices.Index(p.lanes, l)
	return i >= 0 && (p.tiers == nil || p.uses(now, p.tiers.tierOf[i]))
}

// obstacle returns what keeps the lane from letting a call go, and until when. A lane that is well
// and has calls under way is not blocked: it may wait for their ends.
func (l *lane) obstacle(now time.Time) (why string, until time.Time, blocked bool) {
	switch {
	case l.phase == Cooling:
		return l.reason.String(), l.until, true
	case l.phase == Probing:
		return "probe", time.Time{}, true
	case !l.usable() || l.inEpoch > 0 || l.full(now):
		return "", time.Time{}, false
	}
	wait, by := l.law.Wait(now, l.nextCost())
	if wait > 0 {
		until = l.freeAt(now, by)
	}
	return by.Why(), until, wait > 0
}

// freeAt returns when the law of a healthy lane is expected to let the next call go; zero: unknown,
// or now. That is the end of a hold, or when the limit that the law names has enough. The wait that
// a law returns does not suffice: it only says when to ask again.
func (l *lane) freeAt(now time.Time, by Bound) (at time.Time) {
	cost := l.nextCost()
	v := l.law.View(now, cost)
	needs := [...]float64{cost.Requests, cost.Tokens(), cost.Input, cost.Output}
	at = v.Hold
	for k := range v.Limits {
		if limit := &v.Limits[k]; by == limiter.Bound(k+1)|limiter.BoundShort {
			at = latest(at, enoughAt(now, limit, needs[k]))
		}
	}
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// enoughAt returns when a limit will have that many units, or all that it can hold if that is less.
// Zero means that this is unknown, or that it has them now. A limit that is filled once a period
// has them when the period ends.
func enoughAt(now time.Time, limit *limiter.LimitView, units float64) time.Time {
	if limit.Capacity > 0 {
		units = min(units, limit.Capacity)
	}
	switch inflow := limit.Refill - limit.Others; {
	case limit.Period > 0:
		return limit.Ends
	case inflow <= 0 || limit.Level >= units:
		return time.Time{}
	default:
		return now.Add(time.Duration(min((units-limit.Level)/inflow, farthest.Seconds()) * float64(time.Second)))
	}
}

// farthest bounds the reported ends: an end that is a day away is as good as none.
const farthest = 24 * time.Hour

// reportOwnWait reports that an item waits for itself for long. Of many items on one lane it
// reports the first. After that it reports only one whose wait ends later by more than the bound.
// So an outage in which every failure names ten minutes is reported once.
func (m *Machine) reportOwnWait(it *Item, cause Reason, why string) {
	l, bound := it.lane, m.cfg.LongWait
	if bound < 0 || it.due.Sub(it.handedOverAt) <= bound || it.expired(it.due) { // its own time is up before that
		return
	}
	if l.wait == nil {
		l.wait = &wait{}
	}
	if it.due.Sub(l.wait.ownUntil) <= bound {
		return
	}
	l.wait.ownUntil = it.due
	m.out.LongWaits = append(m.out.LongWaits, LongWait{
		At: it.handedOverAt, Lane: l.name, Phase: l.phase, Cause: cause, Why: why, Since: it.handedOverAt, Until: it.due,
		Items: int(l.delayed), Own: true, Item: it.Seq, Run: it.run.id,
	})
}

// onlyChecksWaits reports whether time has brought nothing but a look at the waits. Such a look
// must leave no trace, so that no decision depends on it. Lanes are forgotten, and the latest
// moment is noted, only when something has happened. An owner who comes later than a whole long
// wait has more to see.
func (m *Machine) onlyChecksWaits(now time.Time) bool {
	due := !m.checkWaitsAt.IsZero() && !m.checkWaitsAt.After(now) && now.Sub(m.checkWaitsAt) < m.cfg.LongWait
	if m.stepped || !due && !now.Equal(m.waitsCheckedAt) {
		return false
	}
	if at := m.decidesAt(); !at.IsZero() && !at.After(now) {
		return false
	}
	m.waitsCheckedAt = now
	return true
}

// A WaitError says which wait is longer than the machine accepts, and who asked for it.
// errors.Is finds [ErrWaitTooLong] in it, and the server's error.
type WaitError struct {
	Lane  string
	Wait  time.Duration // as the server named it
	Until time.Time     // when it ends
	Most  time.Duration // the longest that the machine accepts
	Cause error         // the server's error; nil: unknown
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("%v: %v on lane %s, until %s, at most %v is waited", ErrWaitTooLong, e.Wait, e.Lane, e.Until.Format(time.RFC3339), e.Most)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is reports the kind of the error.
func (e *WaitError) Is(target error) bool { return target == ErrWaitTooLong }

// Unwrap returns the server's error.
func (e *WaitError) Unwrap() error { return e.Cause }

// waitFor returns the error that stops a lane which would have to wait so long.
func (l *lane) waitFor(now time.Time, wait time.Duration, cause error) error {
	return &WaitError{Lane: l.name, Wait: wait, Until: now.Add(wait), Most: l.cfg.longestWait(), Cause: cause}
}

// longLimit is the shortest period of a limit that stops its lane when it is used up: a shorter
// one is whole again within a run.
const longLimit = 24 * time.Hour

// usedUp returns a limit by the day or longer that a call's headers show as used up; nil: there is
// none. Only a limit counts that is whole again after the longest wait. Units that flow in
// meanwhile do not matter: a lane that lets a call go every few seconds looks alive, and is not.
// News from before a person vouched for the lane never comes here.
func (l *lane) usedUp(o *Outcome) *limiter.Sighting {
	for i := range o.Sightings {
		s := &o.Sightings[i]
		if s.Window >= longLimit && s.Limit > 0 && s.Remaining < 1 && s.HasReset && s.Reset > l.cfg.longestWait() {
			return s
		}
	}
	return nil
}

// A UsedUpError names a limit of which nothing is left. It is the cause of a [WaitError], which
// says when the limit is whole again.
type UsedUpError struct {
	Dimension limiter.Dimension
	Limit     float64       // units per Window
	Window    time.Duration // a day or more
}

func (e *UsedUpError) Error() string {
	period := "day"
	if e.Window > longLimit {
		period = e.Window.String()
	}
	return fmt.Sprintf("all %.0f %s of the %s are used", e.Limit, e.Dimension, period)
}
