package observe

import (
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// An ending is the end of a lane, or of the run: the seconds until then, and the standard
// deviation of their logarithm.
type ending struct {
	lane   string
	after  float64
	spread float64
}

// A rest is the work left on a lane, or in the run.
type workLeft struct {
	items float64
	input float64 // input tokens of an average one, by its bytes; 0: not known
}

// noteLanes learns from a snapshot of the lanes, if there are several. A single lane is described
// by the samples.
func (f *forecaster) noteLanes(p *Snapshot, work []Work) {
	if !hasSeveralLanes(p, work) {
		return
	}
	if f.lanes == nil {
		f.lanes = make(map[string]*laneForecast)
	}
	for i := range p.Lanes {
		f.noteLane(p, &p.Lanes[i])
	}
}

// noteLane learns from the snapshot of one lane what has ended there since the last snapshot.
func (f *forecaster) noteLane(p *Snapshot, l *Lane) {
	now := amounts{
		items: float64(l.Answered + l.Failed), usd: l.Spent.USD,
		input: float64(l.Spent.InputTokens), output: float64(l.Spent.OutputTokens),
	}
	known := f.lanes[l.Name]
	if known == nil {
		if len(f.lanes) <= MaxLanes { // and other
			f.lanes[l.Name] = &laneForecast{seenAt: p.At, slept: p.Ledger[limiter.BoundSlept], seen: now}
		}
		return
	}
	grown, span := now.minus(known.seen), (p.At.Sub(known.seenAt) - p.Ledger[limiter.BoundSlept] + known.slept).Seconds()
	if span <= 0 { // the same snapshot
		return
	}
	switch l.NextBound {
	case limiter.BoundTokens:
		grown.byTokens = span
	case limiter.BoundInputTokens:
		grown.byInput = span
	}
	if representative(l.NextBound, now.items > 0) && l.Breaker == limiter.Closed {
		known.quietTime.add(&known.pace, l.NextBound, span, grown)
	}
	known.spent.add(grown)
	known.seenAt, known.slept, known.seen = p.At, p.Ledger[limiter.BoundSlept], now
}

// hasSeveralLanes reports whether there are lanes to tell apart.
func hasSeveralLanes(p *Snapshot, work []Work) bool { return len(p.Lanes) > 1 || len(work) > 1 }

// outage reports whether a lane with work has an outage. Its breaker is not closed, or its server
// has let nothing in for longer than a wave of refusals lasts.
func outage(p *Snapshot) bool {
	for i := range p.Lanes {
		l := &p.Lanes[i]
		if l.Left == 0 || l.Phase == machine.Stopped {
			continue
		}
		busy := p.Bottleneck.By == limiter.BoundOverload && refusesAll(&l.LaneStatus) && p.At.Sub(l.View.Drought).Seconds() > longQuiet
		if busy || l.Breaker != limiter.Closed {
			return true
		}
	}
	return len(p.Lanes) == 0 && p.Open+p.HalfOpen > 0
}

// lastEnding returns the ending of the lane that ends last, and the seconds until the others have
// ended. Lanes whose items come late in the input have no pace of their own yet. Then the ending of
// the run as a whole counts too.
func (f *forecaster) lastEnding(p *Snapshot, work []Work) (last ending, others float64, ok bool) {
	if p.State == Draining || p.State == Stopped {
		return ending{after: lastCalls(p.InFlight, p.P50, p.P95), spread: mostSpread}, 0, p.P50 > 0
	}
	if !hasSeveralLanes(p, work) || readsNoMore(p) {
		last, ok = f.runEnding(p, work)
		return last, 0, ok
	}
	all := true
	for i := range p.Lanes {
		l := &p.Lanes[i]
		if l.Left == 0 || l.Phase == machine.Stopped {
			continue
		}
		e, known := f.lanes[l.Name].ending(p, l, f.workLeftOn(l, work))
		switch {
		case !known:
			all = false
		case !ok || e.after >= last.after:
			others, last, ok = last.after, e, true
		default:
			others = max(others, e.after)
		}
	}
	if run, known := f.runEnding(p, work); known && (!ok || !all && run.after > last.after) {
		return run, 0, true
	}
	return last, others, ok
}

// runEnding returns the ending of the run as a whole, and whether it is known.
func (f *forecaster) runEnding(p *Snapshot, work []Work) (ending, bool) {
	left := workLeft{items: itemsLeft(p)}
	if hasSeveralLanes(p, work) || len(p.Lanes) == 0 {
		return f.runPace.ending(left, f.runPace.rate(), 0, p.InFlight, p.P50, p.P95)
	}
	l := &p.Lanes[0]
	left.input = inputPerItem(l, work, f.spent.amounts, left.items)
	rate, wait := f.runPace.rateAhead(p, l, left)
	return f.runPace.ending(left, rate, wait, p.InFlight, p.P50, p.P95)
}

// ending returns the lane's own ending, and whether it is known.
func (k *laneForecast) ending(p *Snapshot, l *Lane, left workLeft) (ending, bool) {
	if k == nil || l.Left == UnknownTotal {
		return ending{}, false
	}
	rate, wait := k.pace.rateAhead(p, l, left)
	e, ok := k.pace.ending(left, rate, wait, l.InFlight, l.P50, l.P95)
	e.lane = l.Name
	return e, ok
}

// ending returns when the work left will be done, and whether that is known. After the wait, items
// that have not left yet go at the given rate, and the last calls follow. Nothing is known while no
// item has ended.
func (p *pace) ending(left workLeft, rate, wait float64, inFlight int, p50, p95 time.Duration) (ending, bool) {
	if left.items <= 0 {
		return ending{}, true
	}
	if rate == 0 {
		return ending{}, false
	}
	after := wait + left.items/rate
	if calls := min(float64(inFlight), left.items); p50 > 0 {
		after = wait + (left.items-calls)/rate + lastCalls(int(calls), p50, p95)
	}
	return ending{after: after, spread: p.deviation(after)}, true
}

// believedSpan is the weight of the believed capacity, as seconds of observation. What was seen
// of a run older than that includes cooldowns like the present one.
const believedSpan = 5 * 60

// rateAhead returns the items a second at which a lane will go on, and the seconds until it does.
// The rate is that of the past, but at most what the lane's limit on requests allows for long.
// Saved-up quota is soon spent. While the lane cools and climbs back, the believed capacity of its
// limits counts too.
func (p *pace) rateAhead(of *Snapshot, l *Lane, left workLeft) (rate, wait float64) {
	rate = p.rate() / p.costFactor(left)
	if of := &l.View.Limits[0]; of.Known() && of.Refill > 0 { // neither others, who come and go, nor the tokens of waiting items count
		rate = min(rate, of.Refill)
	}
	if l.Breaker != limiter.Closed { // the question is how long the work that is left takes
		return rate, 0
	}
	switch l.Phase {
	case machine.Cooling, machine.Probing, machine.Ramping:
		if c := believedRate(of, l); !math.IsInf(c, 1) && c > 0 {
			rate = (rate*p.totalSpan + c*believedSpan) / (p.totalSpan + believedSpan)
		}
	}
	if l.Phase == machine.Cooling {
		wait = max(0, l.Until.Sub(of.At).Seconds())
	}
	return rate, wait
}

// costFactor returns how many times as much of the binding limit an item left will draw, compared
// with those that ended lately. It differs from 1 only as far as that limit was on tokens.
func (p *pace) costFactor(left workLeft) float64 {
	a, span := p.now()
	if left.input <= 0 || a.input <= 0 {
		return 1
	}
	inputLeft := left.input * a.items
	more := a.byInput*(inputLeft/a.input-1) + a.byTokens*((inputLeft+a.output)/(a.input+a.output)-1)
	return max(0.1, 1+more/span)
}

// workLeftOn returns the work left on a lane, where there are several.
func (f *forecaster) workLeftOn(l *Lane, work []Work) workLeft {
	left := workLeft{items: float64(max(0, l.Left))}
	if k := f.lanes[l.Name]; k != nil {
		left.input = inputPerItem(l, work, k.seen, left.items)
	}
	return left
}

// inputPerItem returns the input tokens of an average item left on a lane. It learns the tokens per
// byte from what has ended there. It returns 0 before 30 items have ended, and where the lengths in
// bytes are unknown.
func inputPerItem(l *Lane, work []Work, ended amounts, left float64) float64 {
	i := slices.IndexFunc(work, func(w Work) bool { return w.Lane == l.Name })
	if i < 0 || l.LeftBytes <= 0 || left <= 0 || ended.items < earlyItems {
		return 0
	}
	endedBytes := float64(work[i].Bytes - l.LeftBytes)
	if endedBytes <= 0 {
		return 0
	}
	return ended.input / endedBytes * float64(l.LeftBytes) / left
}

// itemsLeft returns the number of items left in the run. A run that stops early reads no more.
func itemsLeft(p *Snapshot) float64 {
	if readsNoMore(p) {
		return float64(p.Waiting + p.InFlight)
	}
	return float64(unended(p))
}

// readsNoMore reports whether this run will never ask some items of the input.
func readsNoMore(p *Snapshot) bool { return p.InputEnded && p.Waiting+p.InFlight < unended(p) }

func unended(p *Snapshot) int { return max(0, p.Total-p.Before-p.Answered-p.Failed-p.NotRun) }

// believedRate returns the items a second that a lane's limits, window and concurrency are believed
// to allow; +Inf if none is known.
func believedRate(p *Snapshot, l *Lane) float64 {
	most := rateOfLimits(l)
	if l.Latency <= 0 {
		return most
	}
	for _, calls := range []int{l.Window, p.Concurrency} {
		if calls > 0 {
			most = min(most, float64(calls)/l.Latency.Seconds())
		}
	}
	return most
}

// rateOfLimits returns the items a second that a lane's known limits let through, after what others
// draw on them. It does not subtract the hundredths that the law keeps back: they save up, and are
// spent too.
func rateOfLimits(l *Lane) float64 {
	most := math.Inf(1)
	draws := [limiter.Dimensions]float64{max(1, l.Draw.Requests), l.Draw.Tokens(), l.Draw.Input, l.Draw.Output}
	for k, of := range l.View.Limits {
		if of.Known() && of.Refill > 0 && draws[k] > 0 {
			most = min(most, max(0, of.Refill-of.Others)/draws[k])
		}
	}
	return most
}

// Before there is a pace, a limit may say when the run ends. It must be one that the provider
// or the user told, and that the run keeps to.
const (
	limitSpan   = 5 * time.Second // least time of the run: before, it is not known what holds it back
	limitLeast  = 0.8             // of the limit must have been drawn, and
	limitMost   = 1.1             // no more: what was saved up is spent
	limitSpread = 0.12            // standard deviation of the logarithm of the end: limits are kept to, but calls break and wait
)

// endByLimit returns the ending of a run of one lane that a told limit holds back, at the rate of
// that limit. It reports false if no such limit holds the run back.
func endByLimit(p *Snapshot, work []Work) (ending, bool) {
	if hasSeveralLanes(p, work) || len(p.Lanes) != 1 || p.At.Sub(p.Began) < limitSpan {
		return ending{}, false
	}
	l := &p.Lanes[0]
	for k, by := range limitBounds {
		v, used := &l.View.Limits[k], l.Used[k]
		stated := v.Source == limiter.Configured || v.Source == limiter.Seen
		if p.Bottleneck.By == by && stated && used >= limitLeast && used <= limitMost {
			if rate := rateOfLimits(l); rate > 0 && !math.IsInf(rate, 1) {
				return ending{after: itemsLeft(p) / rate, spread: limitSpread}, true
			}
		}
	}
	return ending{}, false
}

// z95 is the number of standard deviations from the median up to the 95th percentile.
const z95 = 1.645

// lastCalls returns the seconds after which the last of n calls has ended, in half of all cases.
// Half of all answers take at most p50, and 95 % at most p95. Answers are taken to be lognormal,
// which they nearly are.
//
// Let R be the mean of what answers take beyond x over their mean. Of the calls in flight at
// some moment, n·R(x) take longer than x from then on. The last has ended where that is ln 2:
// the chance that no call is left is then one half.
func lastCalls(n int, p50, p95 time.Duration) float64 {
	if n == 0 || p50 <= 0 {
		return 0
	}
	l := lognormal{mu: math.Log(p50.Seconds())}
	l.sigma = max(0.01, math.Log(max(p50, p95).Seconds())-l.mu) / z95
	low, high := 0.0, l.quantile(6)
	for range 40 {
		if x := (low + high) / 2; float64(n)*l.beyond(x) > math.Ln2 {
			low = x
		} else {
			high = x
		}
	}
	return high
}

// lognormal is a distribution of times in seconds, by mean and standard deviation of their
// logarithms.
type lognormal struct{ mu, sigma float64 }

func (l lognormal) quantile(z float64) float64 { return math.Exp(l.mu + z*l.sigma) }

// beyond returns the mean excess of times over x, as a share of the mean time. A time shorter than
// x has an excess of 0.
func (l lognormal) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	z := (math.Log(x) - l.mu) / l.sigma
	mean := math.Exp(l.mu + l.sigma*l.sigma/2)
	return normalCDF(l.sigma-z) - x/mean*normalCDF(-z)
}

// normalCDF returns the chance that a standard normal variable is at most z.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
