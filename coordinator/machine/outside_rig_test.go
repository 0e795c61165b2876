package machine

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A maker makes laws that are led from outside, and keeps them.
type maker struct{ made []*permitLaw }

func (m *maker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	l := &permitLaw{}
	m.made = append(m.made, l)
	return l
}

// law is the latest.
func (m *maker) law() *permitLaw { return m.made[len(m.made)-1] }

// A permitLaw lets a call leave for each permit that it gets, and says every tenth of a second
// how many items wait.
type permitLaw struct {
	limiter.Unlimited
	permits int
	probes  int // of the next calls
	rests   bool
	number  uint64
	left    map[uint64]limiter.Cost // calls that left and have not ended
	ended   []Outcome
	strange int // ends of calls that it did not let go

	next  time.Time
	asked []asking
}

type asking struct {
	at    time.Time
	up    limiter.Upcoming
	costs []limiter.Cost
}

// Words that a permitLaw hears, besides numbers of permits.
type (
	probeMessage struct{}
	restMessage  struct{ rests bool }
)

func (l *permitLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Bound) {
	switch {
	case l.rests && l.probes > 0:
		return 0, limiter.BoundCooldown
	case l.rests:
		return limiter.UntilNotified, limiter.BoundCooldown
	case l.permits == 0:
		return limiter.UntilNotified, limiter.BoundRequests
	}
	return 0, limiter.BoundNone
}

func (l *permitLaw) Sent(_ time.Time, c limiter.Cost, _ int) limiter.Ticket {
	l.permits--
	l.number++
	if l.left == nil {
		l.left = map[uint64]limiter.Cost{}
	}
	l.left[1000+l.number] = c
	k := limiter.Ticket{Number: 1000 + l.number, Probe: l.probes > 0}
	l.probes = max(0, l.probes-1)
	return k
}

func (l *permitLaw) Hear(_ time.Time, message any) limiter.Reply {
	switch w := message.(type) {
	case int:
		l.permits += w
	case probeMessage:
		l.permits++
		l.probes++
	case restMessage:
		l.rests = w.rests
	case limiter.Reply:
		return w
	}
	return limiter.Reply{}
}

func (l *permitLaw) Ended(_ time.Time, k limiter.Ticket, o Outcome) {
	if _, left := l.left[k.Number]; !left {
		l.strange++
	}
	delete(l.left, k.Number)
	l.ended = append(l.ended, o)
}

const permitAsks = 100 * time.Millisecond

func (l *permitLaw) Say(now time.Time, up limiter.Upcoming) (message any, next time.Time) {
	a := asking{at: now, up: up}
	up.Costs(func(c limiter.Cost) bool { a.costs = append(a.costs, c); return true })
	a.up.Costs = nil
	l.asked = append(l.asked, a)
	if now.Before(l.next) || up.Waiting == 0 {
		return nil, l.next
	}
	l.next = now.Add(permitAsks)
	return up.Waiting, l.next
}

func (l *permitLaw) latest() asking { return l.asked[len(l.asked)-1] }

// The laws that a remote lane's law is not asked or told as.
func (l *permitLaw) Answered(time.Time, limiter.News) { l.strange++ }
func (l *permitLaw) Failed(time.Time, limiter.News)   { l.strange++ }
func (l *permitLaw) Vanished(time.Time, limiter.News) { l.strange++ }
func (l *permitLaw) Broken(time.Time)                 { l.strange++ }
func (l *permitLaw) Refused(time.Time, limiter.News) limiter.Refusal {
	l.strange++
	return limiter.Refusal{}
}

// remoteBed is a bed whose lanes are remote.
func remoteBed(c LaneConfig, r RunConfig) (*bed, *maker) {
	by := &maker{}
	c.Maker = by
	return newBed(c, r), by
}

func (b *bed) tell(message any) { b.Step(b.now, Delivered(DefaultPool, message)); b.decide() }
