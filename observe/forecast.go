package observe

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Before this there is no forecast: an end would be a guess.
const (
	earlyItems = 30
	earlySpan  = 20 * time.Second
)

// Reasons for a forecast without an end.
const (
	whyEarly  = "early"
	whyTotal  = "total"
	whyOutage = "outage"
	whyPaused = "paused"
	whyOver   = "over"
)

// A forecaster says when a run ends and what it costs in all. The zero value is ready. It
// belongs to one goroutine at a time, and holds half a megabyte for 32 lanes.
//
//	note, each second ─▶ pace of the run, and what its items cost
//	forecastEnd ───────▶ pace of each of several lanes ─▶ the latest lane's end ─▶ steadyEnd: what is shown
//	estimateCost ──────▶ spent + what is left × what one costs
//
// A [Work] says how many bytes a lane had to do; the snapshot says how many of them are left.
type forecaster struct {
	runPace   pace
	spent     spending // of the run
	lanes     map[string]*laneForecast
	searched  float64 // seconds, since the pace was last forgotten
	quietTime quiet   // of the run
	silent    float64 // seconds since an item ended, but for outages and pauses
	sleeps    sleeps
	shownEnd  time.Time // the end that is shown; zero: none
	shownAt   time.Time // when shown last changed
}

// laneForecast holds what the forecaster knows of one of several lanes.
type laneForecast struct {
	pace      pace
	spent     spending
	quietTime quiet
	seenAt    time.Time
	slept     time.Duration // and
	seen      amounts       // when the snapshot was taken at that time
}

// note learns from one second of the run.
func (f *forecaster) note(s *Sample) {
	ended := amounts{
		float64(s.Answered + s.Failed), float64(s.InputTokens), float64(s.OutputTokens), s.USD,
		s.Bounds[limiter.BoundTokens].Seconds(), s.Bounds[limiter.BoundInputTokens].Seconds(),
	}
	by := s.Bounds.Longest()
	switch {
	case by == limiter.BoundSearch:
		f.searched += s.Span
	case f.searched >= searchLeast && s.Elapsed <= searchSpan: // the pace of a search that is over says nothing of the time after
		f.runPace, f.searched = pace{}, 0
		clear(f.lanes)
	}
	if representative(by, f.spent.items+ended.items > 0) {
		f.quietTime.add(&f.runPace, by, s.Span, ended)
		f.silent += s.Span
	}
	if ended.items > 0 {
		f.silent = 0
	}
	f.spent.add(ended)
}

// searchSpan is the number of seconds at the beginning of a run in which the pace of a search
// is forgotten once the search ends. A search doubles each few seconds, so no pace is out of
// its reach by then.
const (
	searchSpan  = 120
	searchLeast = 5 // seconds of it; less leaves the pace as it is
)

// representative reports whether time under a bound is like time to come. An outage, a pause and a
// sleep of the computer are not. Before the first item ends, time counts only if the calls in
// flight hold the run back: each later one then takes as long. Otherwise that time shows only the
// latency of the first call.
func representative(by limiter.Bound, begun bool) bool {
	switch by {
	case limiter.BoundBreaker, limiter.BoundUnanswered, limiter.BoundPaused, limiter.BoundSlept:
		return false
	case limiter.BoundConcurrency, limiter.BoundWindow:
		return true
	}
	return begun
}

// longQuiet is the number of seconds after which a server that is too busy, and answers
// nothing, counts as an outage. Waves of refusals are over sooner, and come again.
const longQuiet = 10

// quiet is the time in seconds for which a busy server has let nothing in. It counts when the
// server answers again, unless it was too long.
type quiet float64

// add adds a span of time to the pace. While a busy server lets nothing in, the span goes to the
// quiet time instead. Quiet time joins the pace when the server answers again, unless it was too
// long.
func (q *quiet) add(to *pace, by limiter.Bound, span float64, a amounts) {
	if a.items == 0 && (by == limiter.BoundOverload || by == limiter.BoundRecovery && *q > 0) {
		*q += quiet(span)
		return
	}
	if *q <= longQuiet {
		to.add(float64(*q), amounts{})
	}
	*q = 0
	to.add(span, a)
}

// forecastEnd returns the forecast of the run's end, as seen from the snapshot. It must be called
// every few seconds: the pace of lanes is learned from the snapshots, in blocks no shorter than the
// time between two.
func (f *forecaster) forecastEnd(p *Snapshot, work []Work) Forecast {
	f.sleeps.capLatencies(p)
	f.noteLanes(p, work)
	why := f.whyUnknown(p)
	last, others, ok := f.lastEnding(p, work)
	if limited, known := endByLimit(p, work); known && why == whyEarly {
		last, others, ok, why = limited, 0, true, ""
	}
	switch {
	case why == whyOutage, why == whyPaused:
		f.shownEnd = time.Time{}
		return Forecast{Why: why, Left: seconds(last.after)}
	case why != "":
		f.shownEnd = time.Time{}
		return Forecast{Why: why}
	case !ok:
		return Forecast{Why: whyEarly}
	}
	last.after = max(last.after, silentTimes*f.silent) // nothing has ended for long: an end soon is no longer likely
	e := Forecast{Known: true, Lane: last.lane, Others: seconds(others)}
	e.Low, e.High = seconds(last.after*math.Exp(-z80*last.spread)), seconds(last.after*math.Exp(z80*last.spread))
	e.Likely = f.steadyEnd(p.At, seconds(last.after), (e.High-e.Low)/2)
	e.Low, e.High = min(e.Low, e.Likely), max(e.High, e.Likely) // while it rests
	return e
}

// silentTimes bounds the end from below: it is at least as far off as this many times the
// silence since the latest item ended. During a silence the shown end then moves seldom, each
// time when the silence has doubled.
const silentTimes = 2

// z80 is the number of standard deviations to either side that hold four cases of five.
const z80 = 1.28

// whyUnknown returns the reason for which no end can be forecast; "": one can.
func (f *forecaster) whyUnknown(p *Snapshot) string {
	switch {
	case p.State == Over:
		return whyOver
	case p.State == Draining || p.State == Stopped: // the run waits only for calls in flight
		return ""
	case p.State == Paused:
		return whyPaused // nobody knows for how long
	case p.Total == UnknownTotal:
		return whyTotal
	case outage(p) || p.Bottleneck.By == limiter.BoundUnanswered:
		return whyOutage
	case p.Answered+p.Failed < earlyItems || p.At.Sub(p.Began) < earlySpan:
		return whyEarly
	}
	return ""
}

// The shown end moves by a second at least, as nobody shows less. It rests for 12 s, so it
// moves five times a minute at most, unless the shown moment is near and the run's end is not.
const (
	leastMove = time.Second
	restSpan  = 12 * time.Second
)

// sleeps keeps calls that were in flight while the computer slept out of the latencies.
type sleeps struct {
	slept    time.Duration // in all
	woke     time.Time     // zero: it did not sleep
	p50, p95 time.Duration // of answers, as long as no such call is among them
}

// capLatencies limits a snapshot's latencies to earlier ones while calls that slept are among the
// answers.
func (s *sleeps) capLatencies(p *Snapshot) {
	if slept := p.Ledger[limiter.BoundSlept]; slept > s.slept {
		s.slept, s.woke = slept, p.At
	}
	if p.At.Sub(s.woke) > LatencySpan+SpeedSpan || s.p95 == 0 {
		s.p50, s.p95 = p.P50, p.P95
		return
	}
	p.P50, p.P95 = min(p.P50, s.p50), min(p.P95, s.p95)
	for i := range p.Lanes {
		l := &p.Lanes[i]
		l.P50, l.P95 = min(l.P50, s.p95), min(l.P95, s.p95)
	}
}

// steadyEnd returns the time until the end to show. half is half the width of the forecast. The
// shown end moves only when it is off by more than a quarter of that: nobody believes an end that
// jumps about. It moves at once when less than a quarter of the likely time is left to it. An end
// that passes while the run goes on would be believed still less.
func (f *forecaster) steadyEnd(at time.Time, likely, half time.Duration) time.Duration {
	end := at.Add(likely)
	rests := at.Sub(f.shownAt) < restSpan || end.Sub(f.shownEnd).Abs() <= max(leastMove, half/4)
	comes := f.shownEnd.Sub(at) < likely/4 && likely >= 5*leastMove
	switch {
	case f.shownEnd.IsZero() || !rests:
		f.shownEnd, f.shownAt = end, at
	case comes: // it then rests for twice as long, as it did not before
		f.shownEnd, f.shownAt = end, at.Add(restSpan)
	}
	return max(0, f.shownEnd.Sub(at))
}

// seconds returns a duration of s seconds, or the longest one if s is longer than that.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(s * 1e9)
}

// A spending is the cost of items: its average, its spread, and the part that goes by input
// tokens. The zero value knows nothing yet.
type spending struct {
	amounts
	samples float64 // in which items ended
	squares float64 // of the USD of a sample over its items

	// Sums of products over the samples, for a price per token of either kind.
	inIn, inOut, outOut, inUSD, outUSD float64
}

// add counts the items that ended in a span of time, and their cost.
func (s *spending) add(a amounts) {
	s.amounts = s.plus(a)
	if a.items <= 0 {
		return
	}
	s.samples++
	s.squares += a.usd * a.usd / a.items
	s.inIn += a.input * a.input
	s.inOut += a.input * a.output
	s.outOut += a.output * a.output
	s.inUSD += a.input * a.usd
	s.outUSD += a.output * a.usd
}

// deviation returns the standard deviation of the cost of one item. The sum of k items spreads
// √k times as much as one.
func (s *spending) deviation() float64 {
	if s.samples < 2 {
		return 0
	}
	mean := s.usd / s.items
	return math.Sqrt(max(0, (s.squares-mean*mean*s.items)/(s.samples-1)))
}

// costOf returns the expected cost of the work left in USD, and its standard deviation.
func (s *spending) costOf(left workLeft) (usd, deviation float64) {
	if s.items == 0 {
		return 0, 0
	}
	inputFactor, determinant := 1.0, s.inIn*s.outOut-s.inOut*s.inOut
	// The input tokens' part of the cost is found by least squares, unless both kinds of tokens
	// always come in the same proportion.
	if left.input > 0 && s.input > 0 && s.usd > 0 && determinant > 1e-9*s.inIn*s.outOut {
		price := (s.inUSD*s.outOut - s.outUSD*s.inOut) / determinant
		inputFactor += min(1, max(0, price*s.input/s.usd)) * (left.input*s.items/s.input - 1)
	}
	return left.items * s.usd / s.items * inputFactor, s.deviation() * math.Sqrt(left.items*left.items/s.items+left.items)
}

// estimateCost returns the estimated cost of the whole run, of the items that have a price. It is
// unknown while the total is, before 30 items have ended, and before one with a price has. It is
// unknown, too, once the run drains or is stopped.
func (f *forecaster) estimateCost(p *Snapshot, work []Work) Estimate {
	if p.Total == UnknownTotal || p.State == Draining || p.State == Stopped || p.Spent.Priced == 0 || p.Answered+p.Failed < earlyItems {
		return Estimate{}
	}
	if p.State == Over {
		return Estimate{Likely: p.Spent.USD, Known: true}
	}
	f.noteLanes(p, work)
	usd, variance := f.costLeft(p, work)
	return Estimate{Likely: p.Spent.USD + usd, PlusMinus: z80 * math.Sqrt(variance), Known: true}
}

// costLeft returns the USD left to spend and their variance. It adds them lane by lane, as far as
// lanes are known.
func (f *forecaster) costLeft(p *Snapshot, work []Work) (usd, variance float64) {
	left := itemsLeft(p)
	if !hasSeveralLanes(p, work) {
		of := workLeft{items: left}
		if len(p.Lanes) == 1 {
			of.input = inputPerItem(&p.Lanes[0], work, f.spent.amounts, left)
		}
		usd, dev := f.spent.costOf(of)
		return usd, dev * dev
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		lane := f.lanes[l.Name]
		if lane == nil || l.Left <= 0 || lane.spent.usd == 0 {
			continue
		}
		more, dev := lane.spent.costOf(f.workLeftOn(l, work))
		usd, variance = usd+more, variance+dev*dev
		left -= float64(l.Left)
	}
	more, dev := f.spent.costOf(workLeft{items: max(0, left)})
	return usd + more, variance + dev*dev
}
