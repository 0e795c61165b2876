package permit

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func costs(input ...float64) func(func(limiter.Cost) bool) {
	return func(yield func(limiter.Cost) bool) {
		for _, n := range input {
			if !yield(limiter.Cost{Requests: 1, Input: n}) {
				return
			}
		}
	}
}

// A rig is a law, what waits for it, and what it has said.
type rig struct {
	*Law
	t       *testing.T
	now     time.Time
	waiting []float64
	free    int
	busy    int
	said    []*Ask
	next    time.Time
}

func newRig(t *testing.T, waiting ...float64) *rig {
	return &rig{Law: New("w", "j", "l"), t: t, now: noon, waiting: waiting, free: 64}
}

// at has time pass, and the law say what it has to say meanwhile.
func (r *rig) at(d time.Duration) *rig {
	to := noon.Add(d)
	for r.say(); !r.next.IsZero() && !r.next.After(to); r.say() {
		if !r.next.After(r.now) {
			r.t.Fatalf("at %v it wants to be asked at %v", r.now.Sub(noon), r.next.Sub(noon))
		}
		r.now = r.next
	}
	r.now = to
	r.say()
	return r
}

func (r *rig) say() *Ask {
	up := limiter.Upcoming{Waiting: len(r.waiting), Free: r.free, Busy: r.busy, InFlight: len(r.out), Costs: costs(r.waiting...)}
	a, next := r.Say(r.now, up)
	r.next = next
	if a == nil {
		return nil
	}
	ask := a.(*Ask)
	if err := ask.Validate(); err != nil {
		r.t.Errorf("it says %v", err)
	}
	r.said = append(r.said, ask)
	return ask
}

func (r *rig) last() *Ask { return r.said[len(r.said)-1] }

// give gives permits of those costs that answer the latest ask.
func (r *rig) give(epoch, wave uint64, from Number, input ...float64) limiter.Reply {
	g := &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: epoch, Wave: wave, Heard: r.last().Seq}
	for i, n := range input {
		g.Permits = append(g.Permits, Permit{Number: from + Number(i), Cost: Cost{Input: n}})
	}
	return r.Hear(r.now, g)
}

// leaves has the first call in line leave if it may.
func (r *rig) leaves() (k limiter.Ticket, left bool) {
	c := limiter.Cost{Requests: 1, Input: r.waiting[0]}
	wait, _ := r.Wait(r.now, c)
	if wait == 0 {
		k = r.Sent(r.now, c, 0)
		r.waiting = r.waiting[1:]
	}
	return k, wait == 0
}

func (r *rig) mustLeave() limiter.Ticket {
	r.t.Helper()
	k, left := r.leaves()
	if !left {
		r.t.Fatal("there is no permit")
	}
	return k
}

func (r *rig) mustNotLeave(why string) {
	r.t.Helper()
	if _, left := r.leaves(); left {
		r.t.Fatalf("a call left: %s", why)
	}
}
