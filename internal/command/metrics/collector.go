package metrics

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/observe"
)

// A Stand is how a run stands at one moment.
type Stand struct {
	observe.Snapshot
	Times   []observe.Times
	Pending int // result lines that are not on the disk yet
}

// A Collector shows the figures of one run.
type Collector struct {
	stand func() (Stand, bool)
}

// NewCollector returns a collector of the run whose stand the function returns. The function
// returns false before the run has begun, and may be called by any goroutine.
func NewCollector(stand func() (Stand, bool)) *Collector { return &Collector{stand: stand} }

// Collect shows the figures of this moment.
func (c *Collector) Collect(page *exposition.Page) {
	Build{}.Collect(page)
	s, ok := c.stand()
	if !ok {
		return
	}
	out := sender{page}
	out.sendRun(&s)
	out.sendLanes(&s)
	out.sendWithoutLane(&s)
	out.sendTimes(s.Times)
}

// Build shows which build is running.
type Build struct{}

// Collect shows it.
func (Build) Collect(page *exposition.Page) {
	page.Add(buildInfo, 1, account.Version(), runtime.Version(), revision())
}

// revision returns the commit of the build; "" if the build does not know it.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// A sender puts the figures of a run on a page.
type sender struct{ page *exposition.Page }

func (s sender) send(f *family, v float64, labels ...string) { s.page.Add(f, v, labels...) }

// sendRun sends the figures of the whole run.
func (s sender) sendRun(p *Stand) {
	s.send(runStart, unixSeconds(p.Began))
	if p.Total >= 0 {
		s.send(runItems, float64(p.Total))
	}
	s.send(runBefore, float64(p.Before))
	if p.Ends.Known {
		s.send(runRemaining, p.Ends.Low.Seconds(), "low")
		s.send(runRemaining, p.Ends.Likely.Seconds(), "likely")
		s.send(runRemaining, p.Ends.High.Seconds(), "high")
	}
	for bound, seconds := range event.Seconds(p.Ledger) {
		s.send(runBound, seconds, bound)
	}
	s.send(runAllowed, p.Allowed)
	if p.Efficiency > 0 {
		s.send(runEfficient, p.Efficiency)
	}
	if !p.LastEnd.IsZero() {
		s.send(lastAnswer, unixSeconds(p.LastEnd))
	}
	s.send(itemsHeld, float64(p.Waiting-p.Parked-p.Delayed), "waiting")
	s.send(itemsHeld, float64(p.Parked), "parked")
	s.send(itemsHeld, float64(p.Delayed), "delayed")
	s.send(redistributed, float64(p.Redistributed))
	s.send(callsMost, float64(p.Concurrency))
	if p.Money.Cap > 0 {
		s.send(costCap, p.Money.Cap.USD())
		s.send(costSpent, p.Money.Spent.USD())
		s.send(costReserved, p.Money.Reserved.USD())
	}
	s.send(pendingLines, float64(p.Pending))
	kinds := map[string]int{}
	for _, f := range p.Failures {
		kinds[f.Kind] += f.Count
	}
	for kind, n := range kinds {
		s.send(itemsFailed, float64(n), kind)
	}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// sendLanes sends the figures of each lane.
func (s sender) sendLanes(p *Stand) {
	answers := map[string]int{}
	for i := range p.Times {
		answers[p.Times[i].Lane] = p.Times[i].Answers.Count()
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		s.sendEnded(l.Name, l.Answered, l.Failed, l.NotRun)
		s.sendCalls(l, answers[l.Name])
		s.send(truncated, float64(l.Truncated), l.Name)
		s.sendSpent(l.Name, &l.Spent)
		if l.LaneStatus.Name == "" || l.Name == observe.OtherLanes {
			continue // the run has no status of it
		}
		s.send(callsFlying, float64(l.InFlight), l.Name)
		s.send(laneCooled, float64(l.Counters.Cooldowns), l.Name)
		s.send(laneProbes, float64(l.Counters.Probes), l.Name)
		for phase := machine.Flowing; phase <= machine.Stopped; phase++ {
			in := 0.0
			if l.Phase == phase {
				in = 1
			}
			s.send(lanePhase, in, l.Name, phase.String())
		}
		for k := range l.View.Limits {
			if v := &l.View.Limits[k]; v.Known() {
				s.send(limitRate, v.Refill, l.Name, event.LimitWords[k], event.SourceWord(v))
				s.send(limitUsed, l.Used[k], l.Name, event.LimitWords[k])
			}
		}
	}
}

// sendEnded sends the numbers of a lane's items by their result.
func (s sender) sendEnded(lane string, answered, failed, notRun int) {
	s.send(items, float64(answered), lane, "succeeded")
	s.send(items, float64(failed), lane, "failed")
	s.send(items, float64(notRun), lane, "not_run")
}

// sendCalls sends the numbers of a lane's calls by their outcome.
func (s sender) sendCalls(l *observe.Lane, answered int) {
	s.send(calls, float64(answered), l.Name, "answered")
	s.send(calls, float64(l.Throttled), l.Name, "throttled")
	s.send(calls, float64(l.Broke), l.Name, "broke")
	s.send(calls, float64(l.Calls-answered-l.Throttled-l.Broke), l.Name, "failed")
}

// sendSpent sends the tokens and the cost of a lane.
func (s sender) sendSpent(lane string, spent *observe.Spent) {
	s.send(tokens, float64(spent.InputTokens), lane, "input")
	s.send(tokens, float64(spent.CachedTokens), lane, "cached")
	s.send(tokens, float64(spent.OutputTokens), lane, "output")
	s.send(costUSD, spent.USD, lane)
	s.send(costUnpriced, float64(spent.Unpriced), lane)
}

// sendWithoutLane sends the items that ended before they had a lane, under the empty name.
func (s sender) sendWithoutLane(p *Stand) {
	answered, failed, notRun := p.Answered, p.Failed, p.NotRun
	for i := range p.Lanes {
		l := &p.Lanes[i]
		answered, failed, notRun = answered-l.Answered, failed-l.Failed, notRun-l.NotRun
	}
	if answered+failed+notRun > 0 {
		s.sendEnded("", answered, failed, notRun)
	}
}

// sendTimes sends the histograms.
func (s sender) sendTimes(all []observe.Times) {
	var queued, between observe.Histogram
	for i := range all {
		t := &all[i]
		queued.Add(&t.Queued)
		between.Add(&t.Between)
		if t.Lane != "" {
			s.sendHistogram(callTime, &t.Answers, t.Lane, "answered")
			s.sendHistogram(callTime, &t.Others, t.Lane, "other")
		}
	}
	s.sendHistogram(queueTime, &queued)
	s.sendHistogram(betweenTime, &between)
}

// timeEnds are the ends of observe's buckets, in seconds.
var timeEnds = func() []float64 {
	ends := make([]float64, len(observe.TimeEnds))
	for k, end := range observe.TimeEnds {
		ends[k] = end.Seconds()
	}
	return ends
}()

// sendHistogram sends one histogram, with the buckets of observe.
func (s sender) sendHistogram(f *family, h *observe.Histogram, labels ...string) {
	spread := &exposition.Spread{Ends: timeEnds, Counts: make([]uint64, len(h.Counts)), Sum: h.Sum.Seconds()}
	for k, n := range h.Counts {
		spread.Counts[k] = uint64(n) //nolint:gosec // a count
	}
	s.page.AddSpread(f, spread, labels...)
}
