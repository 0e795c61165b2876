package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Model is the provider's mind: given the time and a call, it decides what becomes
// of the call. It is not safe for concurrent use and starts nothing.
type Model struct {
	cfg      Config
	start    time.Time
	requests gauge
	tokens   gauge
	changes  []Change // still to come
	chance   chance
	books    ledger
}

// NewModel begins with full gauges at start. It panics with Validate's error
// when the configuration is invalid: one that comes from outside the program is
// validated where it is read.
func NewModel(cfg Config, start time.Time) *Model {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return &Model{
		cfg:      cfg,
		start:    start,
		requests: newGauge(cfg, cfg.RPM, start),
		tokens:   newGauge(cfg, cfg.TPM, start),
		changes:  cfg.Changes,
		books:    newLedger(cfg.TrackIDs, cfg.TrackBodies),
	}
}

// Decide returns the verdict on a call that arrives now. Only a call that passes both gauges is
// charged, whatever fault it meets afterwards.
func (m *Model) Decide(now time.Time, c Call) Verdict {
	if c.Requests == 0 {
		c.Requests = 1
	}
	m.advance(now)
	m.chance.begin(m.cfg.Seed, m.books.callNumber(c.ID), c.ID, m.cfg.TrackIDs)
	v := m.judge(now, c)
	m.books.add(c, v.Kind)
	return v
}

// advance brings the gauges to now by way of each change's own instant, so that
// a change takes effect when it is due and not at the next call.
func (m *Model) advance(now time.Time) {
	for len(m.changes) > 0 {
		at := m.start.Add(m.changes[0].At)
		if at.After(now) {
			break
		}
		m.fill(at)
		m.requests.setLimit(m.changes[0].RPM)
		m.tokens.setLimit(m.changes[0].TPM)
		m.changes = m.changes[1:]
	}
	m.fill(now)
}

func (m *Model) fill(now time.Time) {
	m.requests.advance(now)
	m.tokens.advance(now)
}

// judge checks a call in the order in which a real service can: whether the service is up, then the
// key, the model, the balance, and the limits.
func (m *Model) judge(now time.Time, c Call) Verdict {
	if kind, down := m.outage(now, c); down {
		return m.verdict(kind)
	}
	if kind, rejected := m.rejection(c); rejected {
		return m.verdict(kind)
	}
	fault := m.drawFault(c)
	if fault == BadRequest || fault == Overloaded {
		return m.verdict(fault)
	}
	if m.tokens.perMinute > 0 && c.Tokens > m.tokens.perMinute {
		v := m.withQuota(now, m.verdict(TooLarge))
		v.Dimension = Tokens
		return v
	}
	return m.admit(now, c, fault)
}

// admit charges a call to both gauges, or refuses it and charges none. A charged call may still meet
// the fault that was drawn for it.
func (m *Model) admit(now time.Time, c Call, fault Kind) Verdict {
	if wait, dim := m.wait(now, c); wait > 0 {
		return m.refuse(now, wait, dim)
	}
	m.requests.take(c.Requests)
	m.tokens.take(c.Tokens)
	m.books.ChargedRequests += c.Requests
	m.books.ChargedTokens += c.Tokens
	return m.withQuota(now, m.verdict(fault))
}

// outage returns the kind of a call that arrives during an outage, and false if there is none now.
func (m *Model) outage(now time.Time, c Call) (Kind, bool) {
	since := now.Sub(m.start)
	for _, o := range m.cfg.Outages {
		if since < o.From || since >= o.From+o.For || o.Mode == OutageFlex && !c.Flex {
			continue
		}
		switch o.Mode {
		case OutageHang:
			return Hung, true
		case OutageReset:
			return ResetByPeer, true
		case OutageFlex:
			return NoRoom, true
		default:
			return Overloaded, true
		}
	}
	return "", false
}

// rejection returns the kind of a call that is refused for its key, body or model, or for a spent
// balance; false for any other call. A rejected call draws no fault and is not charged.
func (m *Model) rejection(c Call) (Kind, bool) {
	switch {
	case m.hasNoKey(c):
		return Unauthorized, true
	case c.Invalid:
		return BadRequest, true
	case len(m.cfg.Models) > 0 && !slices.Contains(m.cfg.Models, c.Model):
		return ModelNotFound, true
	case m.cfg.QuotaAfter > 0 && m.books.Accepted >= m.cfg.QuotaAfter:
		return InsufficientQuota, true
	}
	return "", false
}

// hasNoKey reports whether the caller has no key that counts. It depends on nothing that changes.
func (m *Model) hasNoKey(c Call) bool {
	return c.Keyless || len(m.cfg.Keys) > 0 && !slices.Contains(m.cfg.Keys, c.Key)
}

// drawFault returns the fault that a call meets, Accepted if none. It draws once for all rates, so that
// their sum is the share of calls with a fault.
func (m *Model) drawFault(c Call) Kind {
	rates, draw := m.cfg.Errors, m.chance.uniform()
	for _, f := range [...]struct {
		rate float64
		kind Kind
	}{
		{rates.Server500, ServerError},
		{rates.Overloaded503, Overloaded},
		{rates.BadRequest400, BadRequest},
		{rates.Reset, ResetByPeer},
		{rates.Hang, Hung},
		{rates.Truncated, Truncated},
		{rates.Malformed200, Malformed},
		{rates.StreamError, StreamError},
		{rates.StreamSilent, StreamSilent},
	} {
		if draw >= f.rate {
			draw -= f.rate
			continue
		}
		if !c.Stream && (f.kind == StreamError || f.kind == StreamSilent) {
			break
		}
		return f.kind
	}
	return Accepted
}

// wait returns the longer of the two waits, for both gauges are needed at once.
func (m *Model) wait(now time.Time, c Call) (time.Duration, Dimension) {
	r, t := m.requests.wait(now, c.Requests), m.tokens.wait(now, c.Tokens)
	if t > r {
		return t, Tokens
	}
	return r, Requests
}

// refuse returns the verdict on a call that came too early, with the wait for it. RetryAfter is
// that wait, rounded up to whole seconds or milliseconds.
func (m *Model) refuse(now time.Time, wait time.Duration, dim Dimension) Verdict {
	v := m.withQuota(now, m.verdict(RateLimited))
	v.Wait, v.Dimension, v.Terse = wait, dim, m.cfg.Terse
	v.HasRetryAfter = m.cfg.RetryAfter == Always ||
		m.cfg.RetryAfter == Sometimes && m.chance.uniform() < 0.5
	if !v.HasRetryAfter {
		return v
	}
	unit := time.Second
	if m.cfg.RetryAfterMS {
		v.RetryAfterMS, unit = true, time.Millisecond
	}
	v.RetryAfter = roundUp(wait, unit)
	return v
}

func (m *Model) withQuota(now time.Time, v Verdict) Verdict {
	v.Requests, v.Tokens = m.requests.quota(now), m.tokens.quota(now)
	v.HasHeaders = m.cfg.Headers && !v.Hang && !v.Reset
	return v
}

// verdict returns the verdict for a kind, with a latency drawn for it.
func (m *Model) verdict(k Kind) Verdict {
	return Verdict{
		Status:  k.Status(),
		Kind:    k,
		Latency: m.latency(k),
		Reset:   k == ResetByPeer,
		Hang:    k == Hung,
	}
}

// latency returns the time of a generation for a call that was worked on. A call that was turned
// away at the door takes the time of a refusal.
func (m *Model) latency(k Kind) time.Duration {
	switch k {
	case Hung:
		return 0
	case Accepted, ServerError, ResetByPeer, Truncated, Malformed, StreamError, StreamSilent:
		return m.chance.lognormal(m.cfg.Latency)
	default:
		return m.cfg.Refusal
	}
}

// roundUp never returns zero, which would say "at once" where there is a wait.
func roundUp(d, unit time.Duration) time.Duration {
	return max(1, (d+unit-1)/unit) * unit
}

// Books returns a copy of the counts. With TrackIDs it copies one entry for each ID.
func (m *Model) Books() Books { return m.books.snapshot() }

// Abandon records that the caller of an accepted call left before its answer:
// the call stays charged, and its ID counts as not answered.
func (m *Model) Abandon(c Call) { m.books.abandon(c.ID) }

// chance makes the draws of one call at a time. Each call has a stream of its
// own, so that one more draw for one call changes nothing for the next.
type chance struct {
	source rand.PCG
}

// begin takes up the stream of a call: of the try of its ID where IDs are
// tracked, else of its place in the order of arrival.
func (c *chance) begin(seed, serial uint64, id string, tracked bool) {
	if tracked {
		seed ^= face.Sum(id)
	}
	c.source.Seed(face.Mix(seed), face.Mix(serial))
}

// uniform returns a number in [0, 1).
func (c *chance) uniform() float64 {
	return float64(c.source.Uint64()>>11) / (1 << 53)
}

// lognormal draws a latency from a lognormal distribution, by the method of Box and Muller. 1−u keeps
// zero out of the logarithm.
func (c *chance) lognormal(l Latency) time.Duration {
	if l.Median == 0 || l.Sigma == 0 {
		return min(l.Median, l.Max)
	}
	normal := math.Sqrt(-2*math.Log(1-c.uniform())) * math.Cos(2*math.Pi*c.uniform())
	drawn := float64(l.Median) * math.Exp(l.Sigma*normal)
	return time.Duration(min(drawn, float64(l.Max)))
}

// epsilon is the part of a unit that summed fractions may be short of a whole.
// It is forgiven once, not at each call: the level is charged in full.
const epsilon = 1e-6

// dust is the part of a nanosecond that summed fractions may be too long, so
// that a wait of 300 ms is not rounded up to 300.000001.
const dust = 0.01

// maxWait bounds a wait computed from a limit that is nearly zero, where the
// quotient would not fit a Duration.
const maxWait = 365 * 24 * time.Hour

// gauge is one dimension of the quota, requests or tokens. It fills with time,
// continuously or a window's worth at each boundary, and never above its depth.
// A call larger than the depth passes when the gauge is full and leaves a debt.
type gauge struct {
	perMinute float64       // 0: unlimited
	burst     time.Duration // depth in time of refill, without windows
	window    time.Duration // 0: fills continuously
	depth     float64
	level     float64
	at        time.Time // the level is true of this instant; with windows, a boundary
}

func newGauge(c Config, perMinute float64, start time.Time) gauge {
	g := gauge{burst: c.Burst, window: c.Window, at: start}
	g.setLimit(perMinute)
	return g
}

// setLimit changes the limit of a gauge and keeps its level. A gauge that was unlimited begins full.
func (g *gauge) setLimit(perMinute float64) {
	wasUnlimited := g.perMinute == 0
	g.perMinute = perMinute
	span := g.burst
	if g.window > 0 {
		span = g.window
	}
	g.depth = max(1, g.over(span))
	if wasUnlimited {
		g.level = g.depth
	}
	g.level = min(g.level, g.depth)
}

// over returns the amount that flows in during d.
func (g *gauge) over(d time.Duration) float64 {
	return g.perMinute * float64(d) / float64(minute)
}

// advance fills the gauge up to now. A clock that went back fills nothing.
func (g *gauge) advance(now time.Time) {
	elapsed := now.Sub(g.at)
	if g.window > 0 {
		elapsed = elapsed.Truncate(g.window)
	}
	if elapsed <= 0 {
		return
	}
	g.level = min(g.depth, g.level+g.over(elapsed))
	g.at = g.at.Add(elapsed)
}

// wait returns the time from now until the cost can be taken; 0 is at once. The gauge
// has been advanced to now.
func (g *gauge) wait(now time.Time, cost float64) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	return g.until(now, min(cost, g.depth))
}

// until returns the time from now to the instant at which the level is reached.
func (g *gauge) until(now time.Time, level float64) time.Duration {
	missing := level - g.level
	if missing <= epsilon {
		return 0
	}
	if g.window > 0 {
		// What rounding leaves short of a whole window must not cost another.
		windows := math.Ceil(missing/g.over(g.window) - epsilon)
		return g.at.Add(bounded(windows * float64(g.window))).Sub(now)
	}
	ns := missing * float64(minute) / g.perMinute
	return g.at.Add(bounded(math.Ceil(ns - dust))).Sub(now)
}

func bounded(ns float64) time.Duration {
	return time.Duration(min(ns, float64(maxWait)))
}

func (g *gauge) take(cost float64) {
	if g.perMinute > 0 {
		g.level -= cost
	}
}

// quota returns the gauge's state for headers. The limit is per minute whatever
// the depth, so that remaining + reset·limit/60 is the depth.
func (g *gauge) quota(now time.Time) Quota {
	if g.perMinute == 0 {
		return Quota{}
	}
	q := Quota{Limit: g.perMinute, Remaining: max(0, g.level)}
	if g.depth-g.level > epsilon {
		q.Reset = g.until(now, g.depth)
	}
	return q
}
