package model

import (
	"math"

	"github.com/headrace/headrace/limiter"
)

// The dimensions as indexes of arrays.
const (
	dimRequests = iota
	dimTokens
	dimInput
	dimOutput
	dims
)

var dimensionOf = [dims]limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

// index returns the place of d in the arrays by dimension; -1: it has none.
func index(d limiter.Dimension) int {
	for k, dim := range dimensionOf {
		if dim == d {
			return k
		}
	}
	return -1
}

func perDimension(c limiter.Cost) [dims]float64 {
	return [dims]float64{c.Requests, c.Tokens(), c.Input, c.Output}
}

// neighbourFloor is the share of the refill below which a draw of other clients counts as
// noise. Headers round the remainder, and a difference of rounded numbers is seldom exactly
// zero.
const neighbourFloor = 0.03

// A gauge models one of the provider's buckets. Times are seconds since the law began.
//
//	level(t) rises by refill − others, never above capacity; a call takes its cost
//
// The level may be negative. Such a debt says that the provider was found to hold more than was
// believed, or less than was charged. The zero gauge knows of no limit.
type gauge struct {
	source   limiter.Source
	fresh    bool    // told, and nothing was drawn yet: any bucket holds the first call
	burst    float32 // seconds of the user's limit that may be saved up; 0: the user has not said
	refill   float64 // units per second
	capacity float64
	level    float64
	others   float64 // units per second that other clients draw; signed, for an unbiased mean
	at       float64 // the level is true of this moment
	ceiling  float64 // the user's limit, units per second; 0: none

	*shown // nil: no header spoke of this limit, so that most gauges are a line of a processor's cache
}

func (g *gauge) known() bool { return g.source != limiter.Unknown }

// othersDraw returns the draw of other clients, as far as it is more than noise. It stays below the
// refill, which may have been lowered since. Otherwise the level would fall for ever, and no
// call would leave again.
func (g *gauge) othersDraw() float64 {
	if g.others >= neighbourFloor*g.refill && !g.isFixed() {
		return min(g.others, othersMost*g.refill)
	}
	return 0
}

// levelAt returns the level at t. It changes nothing.
func (g *gauge) levelAt(t float64) float64 {
	switch {
	case t <= g.at:
		return g.level
	case g.isFixed():
		return g.fixed.levelAt(g.level, t)
	}
	return min(g.capacity, g.level+(g.refill-g.othersDraw())*(t-g.at))
}

// advance brings the level up to t. It never goes back in time.
func (g *gauge) advance(t float64) {
	if t > g.at {
		g.level = g.levelAt(t)
		if g.isFixed() {
			g.fixed.advance(t)
		}
		g.at = t
	}
}

// most returns the highest level that can be: no call waits for more.
func (g *gauge) most() float64 {
	if g.isFixed() {
		return min(g.capacity, g.fixed.most)
	}
	return g.capacity
}

const (
	// leastDebt is the least bound of a debt: two calls. Where a minute's refill is less, one
	// call could reach the bound, and the next one would pass at once.
	leastDebt = 2

	// debtSeconds and configuredDebtSeconds bound a debt, in seconds of refill. A provider that
	// counts by the minute has forgotten older calls, and one wrong number must not stop a lane
	// for days. A configured limit is a ceiling, so the lane pays back up to an hour of it.
	debtSeconds           = 60
	configuredDebtSeconds = 3600
)

// take draws n units; a negative n gives them back. The debt is bounded.
func (g *gauge) take(n float64) { g.takeOf(0, n) }

// takeOf draws n units for a call with that charge. The debt is bounded, but a call may always owe
// its charge: otherwise calls larger than the bound would leave too often.
func (g *gauge) takeOf(charged, units float64) {
	if g.fresh {
		g.fresh, g.level = false, max(g.level, min(units, g.capacity))
	}
	bound := debtSeconds * g.refill
	if g.source == limiter.Configured {
		bound = configuredDebtSeconds * g.refill
	}
	g.level = min(g.capacity, max(g.level-units, -max(bound, leastDebt, charged)))
}

// capped returns a refill within the user's ceiling.
func (g *gauge) capped(refill float64) float64 {
	if g.ceiling > 0 {
		return min(refill, g.ceiling)
	}
	return refill
}

// slack returns the debt into which a call of that cost may lead where no header tells the
// level. That is two calls, or a second's refill, which is less than any learned bucket holds.
// A configured limit has none: it is a ceiling, and may be kept by a window that slides.
func (g *gauge) slack(cost float64) float64 {
	if g.source == limiter.Configured {
		return 0
	}
	return max(2*cost, margin*g.refill)
}

// burstSeconds returns the seconds of refill that the gauge holds, within reason: they set the
// duration of tries.
func (g *gauge) burstSeconds() float64 {
	return min(60, max(1.5, g.capacity/g.refill))
}

// spacing reports whether the server lets in one call at a time. Calls must then arrive as
// evenly as the bucket refills.
func (g *gauge) spacing(k int) bool {
	return k == dimRequests && g.source == limiter.Seen && g.capacity < 2 && !g.isFixed()
}

// configuredBurst is the seconds of a configured limit that may be saved up where the user sets no burst.
// The saved-up part is sent on top of the limit, and a window, fixed or sliding, counts all of
// it. A fifth of a second is enough for timers and schedulers.
const configuredBurst = 0.2

// Calls do not keep their distance on the way. If a bucket holds no more than one call draws, a
// call that arrives early finds it not yet full.
const (
	earlyShare   = 0.02 // share of such a call's draw that it is charged besides
	burstReserve = 0.05 // seconds of refill that are kept back of a burst
)

// early returns the charge of a call besides its cost, in case it arrives early.
func (g *gauge) early(cost float64) float64 {
	if cost > g.holds() && g.source == limiter.Configured {
		return earlyShare * cost
	}
	return 0
}

// setUserLimit sets the user's limit. refill is in units per second; 0 or less is no limit. burst
// is in seconds of refill.
func (g *gauge) setUserLimit(t, refill, burst float64, tokens bool) {
	g.ceiling = refill
	switch {
	case refill <= 0 && g.source == limiter.Configured:
		g.forget(tokens)
		return
	case refill <= 0:
		return
	}
	g.advance(t)
	g.burst = float32(burst)
	capacity := g.usersCapacity()
	switch g.source {
	case limiter.Unknown:
		g.level, g.at, g.fresh = burst*refill, t, true
		g.refill, g.capacity = refill, capacity
	case limiter.Configured:
		g.refill, g.capacity = refill, capacity
	default: // found out, and now bounded
		g.refill, g.capacity = min(g.refill, refill), min(g.capacity, capacity)
	}
	if g.source != limiter.Seen {
		g.source = limiter.Configured
	}
	g.level = min(g.level, g.capacity)
}

// usersCapacity returns the units that the user's limit lets be saved up.
func (g *gauge) usersCapacity() float64 {
	if g.burst == 0 {
		return configuredBurst * g.ceiling
	}
	burst := float64(g.burst)
	return min(burst, max(burst-burstReserve, configuredBurst)) * g.ceiling
}

// holds returns the units in a bucket of the user's limit: a call that draws no more leaves something there. Any bucket holds
// DefaultBurst.
func (g *gauge) holds() float64 {
	if g.burst == 0 {
		return (limiter.DefaultBurst.Seconds() - burstReserve) * g.ceiling
	}
	return g.usersCapacity()
}

// A userBucket is the bucket of a limit that the user has set. It goes on whatever the gauge believes of the provider's limit, so that
// no change of that belief lets more calls leave.
type userBucket struct{ level, at float64 }

// userLevel returns the level of the bucket of the user's limit.
func (m *Law) userLevel(k int, t float64) float64 {
	g, b := &m.gauges[k], &m.users[k]
	return min(g.usersCapacity(), b.level+g.ceiling*max(0, t-b.at))
}

// drawUser draws n units from the bucket of the user's limit, for a call with that charge. A
// negative n gives units back. The debt is bounded like that of a configured gauge.
func (m *Law) drawUser(k int, t, charged, units float64) {
	g := &m.gauges[k]
	if g.ceiling <= 0 {
		return
	}
	level := max(m.userLevel(k, t)-units, -max(configuredDebtSeconds*g.ceiling, leastDebt, charged))
	m.users[k] = userBucket{min(level, g.usersCapacity()), max(t, m.users[k].at)}
}

// forget removes a configured limit that the user takes back. For requests it remains as a first
// guess. For tokens nothing remains, as no refusal would ever correct it.
func (g *gauge) forget(tokens bool) {
	g.source = limiter.Learned
	if tokens {
		*g = gauge{}
	}
}

// The rest finds the refill of a bucket that nobody tells of. Between two moments at which the
// bucket was empty, the calls let in show the inflow, less any overflow. The overflow depends
// on the depth, so a few depths are supposed in parallel. The law believes the one for which
// successive stretches agree best on the rate: with each other, and with the calls let in while
// the bucket was empty. The stretches alone cannot tell a deep bucket that is asked for bursts
// from a shallow one that refills as fast as they are.
var depths = [...]float64{0, 1.5, 60} // seconds of refill; at least one call

const (
	inflowSteps      = 10   // halve the range until it is a thousandth of what it was
	scoreMemory      = 0.7  // of a stretch's disagreement, at the next one
	mostDisagreement = 0.2  // nats²: rates apart by more than half have changed
	betterDepth      = 0.7  // of the score of a deeper one: deeper flatters nobody
	rateMemory       = 60.0 // seconds: what is long past says nothing of now
	raisedSpan       = 5.0  // seconds of evidence that stand once a rate was raised
	emptyLeast       = 20   // calls, for the share of them that was let in to be right to a quarter
	emptyOpen        = 0.8  // share: where more is let in it may be that nothing is empty, and chance refuses
	emptyClosed      = 0.5  // of what is let in on the whole: where less is let in something is closed, as a window is
)

// An interval lies between two moments at which the bucket was empty.
type interval struct {
	from, to float64
	fastest  float64 // calls per second: the pace that was refused in the end
}

// depthEvidence is the evidence under one depth.
type depthEvidence struct {
	calls, span float64 // so much flowed in, in so many seconds
	latest      float64 // rate of the latest stretch
	score       float64 // how much successive stretches disagree
}

// inflow is the rate of refill, under each depth. The zero inflow knows nothing, and takes no
// room. Later lessons do not reach a copy: they are written to fresh memory.
type inflow struct {
	byDepth *[len(depths)]depthEvidence // nil: nothing is known
	best    int
}

// renew moves the evidence to memory of its own, to be changed.
func (f *inflow) renew() {
	fresh := new([len(depths)]depthEvidence)
	if f.byDepth != nil {
		*fresh = *f.byDepth
	}
	f.byDepth = fresh
}

func depthAt(i int, rate float64) float64 { return max(1, depths[i]*rate) }

// addStretch adds a stretch of time to the evidence. emptyInflow is the inflow per second while the
// bucket was empty; 0: unknown.
func (f *inflow) addStretch(s *sends, stretch interval, emptyInflow float64) {
	span := stretch.to - stretch.from
	keep := math.Exp(-span / rateMemory)
	emptyKnown := emptyInflow > emptyClosed*s.accepted(stretch.from, stretch.to)/span
	f.renew()
	for i := range f.byDepth {
		evidence := &f.byDepth[i]
		rate := s.refillRate(stretch, func(r float64) float64 { return depthAt(i, r) })
		if evidence.latest > 0 {
			evidence.score = scoreMemory*evidence.score + disagreement(rate, evidence.latest)
		}
		if emptyKnown {
			evidence.score += disagreement(rate, emptyInflow)
		}
		evidence.latest = rate
		evidence.calls, evidence.span = keep*evidence.calls+rate*span, keep*evidence.span+span
	}
	f.choose()
}

// disagreement of two rates is the square of the factor between them, in nats. A rate that has fallen or risen
// disagrees under every depth, so one stretch decides little.
func disagreement(a, b float64) float64 {
	d := math.Log(a / b)
	return min(d*d, mostDisagreement)
}

// choose picks the depth to believe: a shallower one only if its evidence agrees clearly better.
func (f *inflow) choose() {
	best := len(f.byDepth) - 1
	for i := best - 1; i >= 0; i-- {
		if f.byDepth[i].score < betterDepth*f.byDepth[best].score {
			best = i
		}
	}
	f.best = best
}

func (f *inflow) rate() float64 {
	h := &f.byDepth[f.best]
	return h.calls / h.span
}

// begin starts anew from one interval, and from the depth that the bucket was found to have in it.
func (f *inflow) begin(s *sends, stretch interval, depth, emptyInflow float64) {
	*f = inflow{}
	f.addStretch(s, stretch, emptyInflow)
	for i := range f.byDepth { // a tie-break: the depth nearest to the one found is believed at first
		f.byDepth[i].score += 0.01 * math.Abs(math.Log((depth+1)/(depthAt(i, f.byDepth[i].latest)+1)))
	}
	f.choose()
}

// known reports whether there is any evidence.
func (f *inflow) known() bool { return f.byDepth != nil && f.byDepth[f.best].span > 0 }

// evidence returns the calls that are believed to have flowed in, and the seconds that took.
func (f *inflow) evidence() (calls, span float64) {
	if f.byDepth == nil {
		return 0, 0
	}
	return f.byDepth[f.best].calls, f.byDepth[f.best].span
}

// recall takes up evidence of another time, whose depth is not known.
func (f *inflow) recall(calls, span float64) {
	f.renew()
	for i := range f.byDepth {
		f.byDepth[i] = depthEvidence{calls: calls, span: span, latest: calls / span}
	}
	f.best = len(f.byDepth) - 1
}

// fade keeps only as much of the evidence as new evidence can overrule.
func (f *inflow) fade() {
	if f.byDepth == nil {
		return
	}
	f.renew()
	for i := range f.byDepth {
		if evidence := &f.byDepth[i]; evidence.span > raisedSpan {
			evidence.calls, evidence.span = evidence.calls*raisedSpan/evidence.span, raisedSpan
		}
	}
}

// refillRate returns the rate at which a bucket of that depth is empty at both ends of a stretch.
// It is at least the calls let in per second, and at most fastest.
func (s *sends) refillRate(stretch interval, depth func(rate float64) float64) float64 {
	low := s.accepted(stretch.from, stretch.to) / (stretch.to - stretch.from)
	high := max(low, stretch.fastest)
	if s.replay(dimRequests, 0, high, depth(high), stretch.from, stretch.to) <= 0 {
		return high
	}
	for range inflowSteps {
		if mid := (low + high) / 2; s.replay(dimRequests, 0, mid, depth(mid), stretch.from, stretch.to) > 0 {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}

// emptyInflow returns the inflow per second of a stretch that begins with an empty bucket. Calls left
// at the refused pace, and only as many were let in as flowed in, however deep the bucket is.
// 0: the stretch does not show it.
func (s *sends) emptyInflow(e interval) float64 {
	sent, let := s.sent(e.from, e.to), s.accepted(e.from, e.to)
	if sent < emptyLeast || let > emptyOpen*sent {
		return 0
	}
	return e.fastest * let / sent
}

// surplus returns the most that was let in beyond a rate within any part of a stretch of time. A
// bucket that refills at that rate is at least that deep.
func (s *sends) surplus(from, to, rate float64) (most float64) {
	t, over := from, 0.0 // over never falls below 0: what was not sent saves nothing up
	for i := s.after(from); i < s.count; i++ {
		e := s.get(i)
		if e.from > to {
			break
		}
		over = max(0, over-rate*(e.to-t)) + e.drew(dimRequests)*e.share(from, to)
		t, most = e.to, max(most, over)
	}
	return most
}
