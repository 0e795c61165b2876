package model

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// A gate is a tiny server: it decides the fate of a call that arrives, with so many others in
// flight.
type gate func(now time.Time, beside int) answer

// An answer is a gate's decision.
type answer struct {
	refused   bool
	sightings []limiter.Sighting
}

// A rig drives a law against a gate: an owner without machine, runs or items.
type rig struct {
	law     limiter.Law
	gate    gate
	now     time.Time
	cost    limiter.Cost  // of a call; zero: a request
	latency time.Duration // of answers; refusals take a twentieth
	varies  *rand.Rand    // answers take from half as long to half as long again; nil: all the same
	until   time.Time     // nothing leaves before
	probing bool
	epoch   int
	flying  []flight
	blocked bool

	sent, refused int
}

type flight struct {
	news  limiter.News
	epoch int
	ends  time.Time
	said  answer
}

const tick = 5 * time.Millisecond

// most is the number of calls that a rig has in flight, as a run's concurrency.
const most = 100

func newRig(law limiter.Law, g gate) *rig {
	return &rig{law: law, gate: g, now: noon, latency: time.Second}
}

// run lets so much time pass, always with a call that wants to leave.
func (r *rig) run(d time.Duration) *rig {
	return r.runUntil(d, func() bool { return false })
}

// runUntil stops as soon as something is true, too.
func (r *rig) runUntil(d time.Duration, done func() bool) *rig {
	for end := r.now.Add(d); r.now.Before(end) && !done(); r.now = r.now.Add(tick) {
		r.end()
		r.leave()
	}
	return r
}

func (r *rig) leave() {
	if r.now.Before(r.until) {
		return
	}
	if !r.until.IsZero() {
		r.until = time.Time{}
		if r.probing = !r.law.Resume(r.now); !r.probing {
			r.law.Climb(r.now)
		}
	}
	for range 200 {
		window := r.law.Window(r.now)
		if len(r.flying) >= most || window > 0 && len(r.flying) >= window || r.probing && r.present() > 0 {
			return
		}
		r.law.Tick(r.now, r.blocked)
		if wait, _ := r.law.Wait(r.now, r.call()); wait > 0 {
			r.blocked = true
			return
		}
		r.send()
	}
}

// call returns the cost of a call.
func (r *rig) call() limiter.Cost { return cmp.Or(r.cost, limiter.Cost{Requests: 1}) }

func (r *rig) send() {
	said := r.gate(r.now, len(r.flying))
	n := limiter.News{
		Ticket: r.law.Sent(r.now, r.call(), len(r.flying)), Sent: r.now, Cost: r.call(),
		Probe: r.probing, Good: true, Latency: r.latency, Sightings: said.sightings,
	}
	if r.varies != nil {
		n.Latency = time.Duration((0.5 + r.varies.Float64()) * float64(r.latency))
	}
	if said.refused {
		n.Good, n.Latency = false, r.latency/20
		r.refused++
	}
	r.blocked = false
	r.sent++
	r.flying = append(r.flying, flight{n, r.epoch, r.now.Add(n.Latency), said})
}

// present returns the calls of the present epoch that are in flight.
func (r *rig) present() (n int) {
	for _, f := range r.flying {
		if f.epoch == r.epoch {
			n++
		}
	}
	return n
}

func (r *rig) end() {
	for i := 0; i < len(r.flying); i++ {
		if f := r.flying[i]; !r.now.Before(f.ends) {
			r.flying = slices.Delete(r.flying, i, i+1)
			i--
			r.ended(f)
		}
	}
}

func (r *rig) ended(f flight) {
	f.news.Present = f.epoch == r.epoch
	switch {
	case !f.said.refused:
		r.law.Answered(r.now, f.news)
		if r.probing && f.news.Present {
			r.probing = false
			r.law.Climb(r.now)
		}
	case !f.news.Present:
		r.law.Straggled(r.now, f.news)
	default:
		if what := r.law.Refused(r.now, f.news); !what.Alone {
			r.until, r.probing = what.Until, false
			r.epoch++
		}
	}
}

func anything(time.Time, int) answer { return answer{} }

// bucketGate refuses what a bucket does not hold.
func bucketGate(perSecond, depth float64) gate {
	level, last := depth, noon
	return func(now time.Time, _ int) answer {
		level, last = min(depth, level+perSecond*measure.Elapsed(last, now)), now
		if level < 1 {
			return answer{refused: true}
		}
		level--
		return answer{}
	}
}

// capGate refuses what is more than so many at once. What it refused has gone again.
func capGate(places int) gate {
	var busy []time.Time
	return func(now time.Time, _ int) answer {
		busy = slices.DeleteFunc(busy, func(until time.Time) bool { return !now.Before(until) })
		if len(busy) >= places {
			return answer{refused: true}
		}
		busy = append(busy, now.Add(time.Second))
		return answer{}
	}
}

// chanceGate refuses a share of calls, whatever their pace.
func chanceGate(share float64, rng *rand.Rand) gate {
	return func(time.Time, int) answer { return answer{refused: rng.Float64() < share} }
}

// windowGate lets in so many in each minute, and says so in its headers.
func windowGate(limit float64) gate {
	left, began := limit, noon
	return func(now time.Time, _ int) answer {
		for now.Sub(began) >= time.Minute {
			left, began = limit, began.Add(time.Minute)
		}
		a := answer{refused: left < 1}
		left = max(0, left-1)
		a.sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: limit, Remaining: math.Floor(left), Reset: began.Add(time.Minute).Sub(now), HasReset: true,
		}}
		return a
	}
}

// from is one gate until a moment, and another one after it.
func from(t time.Time, before, after gate) gate {
	return func(now time.Time, beside int) answer {
		if now.Before(t) {
			return before(now, beside)
		}
		return after(now, beside)
	}
}

func shut(time.Time, int) answer { return answer{refused: true} }
