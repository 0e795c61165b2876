package otelheadrace

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// now is the clock of snapshots: they are taken when somebody collects.
func now() time.Time { return time.Now() }

// instruments are those of a run, and the faults of making them.
type instruments struct {
	meter metric.Meter
	all   []metric.Observable
	fault error
}

func (i *instruments) counter(name, unit, help string) metric.Float64ObservableCounter {
	c, err := i.meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	i.all, i.fault = append(i.all, c), errors.Join(i.fault, err)
	return c
}

func (i *instruments) gauge(name, unit, help string) metric.Float64ObservableGauge {
	g, err := i.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	i.all, i.fault = append(i.all, g), errors.Join(i.fault, err)
	return g
}

// observeRun registers all metrics of a run but those of its calls, with one callback that takes one snapshot.
func observeRun(meter metric.Meter, rec *observe.Recorder) (metric.Registration, error) {
	created := &instruments{meter: meter}
	metrics := newFamilies(created)
	if created.fault != nil {
		return nil, created.fault
	}
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		snapshot, times := rec.SnapshotAndTimes(now())
		if snapshot.State == observe.Running && snapshot.Ledger.Sum() == 0 {
			return nil // the run has not begun
		}
		s := &snapshotWriter{families: metrics, to: to}
		s.run(&snapshot)
		s.lanes(&snapshot, times)
		return nil
	}, created.all...)
}

type (
	counters = metric.Float64ObservableCounter
	gauges   = metric.Float64ObservableGauge
)

// families are the instruments by what they count. Their names are a promise.
type families struct {
	bound, items, itemsFailed, redistributed, truncated, calls, cooldowns, probes, tokens, costUSD, costUnpriced counters

	runItems, before, remaining, allowed, efficiency, held, inFlight, inFlightMax, rate, used, phase, costMax, costSpent, costReserved gauges
}

// newFamilies creates every instrument, with its name, unit and description.
func newFamilies(i *instruments) *families {
	return &families{
		bound:         i.counter("headrace.run.bound", "s", "Time for which this held the run back; the sum over bound is the time since the start."),
		items:         i.counter("headrace.items", "{item}", "Items that have ended in this run; result is succeeded, failed or not_run."),
		itemsFailed:   i.counter("headrace.items.failed", "{item}", "Items that have failed for good, by the kind of failure."),
		redistributed: i.counter("headrace.items.redistributed", "{item}", "Times an item that had met a refusal was given out again."),
		truncated:     i.counter("headrace.answers.truncated", "{answer}", "Answers that ended at their max_tokens."),
		calls:         i.counter("headrace.calls", "{call}", "Calls that have ended; outcome is answered, throttled, broke or failed."),
		cooldowns:     i.counter("headrace.lane.cooldowns", "{cooldown}", "Cooldowns begun."),
		probes:        i.counter("headrace.lane.probes", "{call}", "Calls that were sent to find out whether the provider lets calls in again."),
		tokens:        i.counter("headrace.tokens", "{token}", "Tokens as the provider counted them; cached ones are also in input."),
		costUSD:       i.counter("headrace.cost.usd", "{USD}", "Known cost of all items that have ended in this run, in US dollars."),
		costUnpriced:  i.counter("headrace.cost.unpriced_items", "{item}", "Items that have ended without a known cost."),

		runItems:     i.gauge("headrace.run.items", "{item}", "Items of the whole input; absent while that is not known."),
		before:       i.gauge("headrace.run.items_before", "{item}", "Items of the input that earlier runs have ended."),
		remaining:    i.gauge("headrace.run.remaining", "s", "Forecast of the time to the end; absent while it cannot be said."),
		allowed:      i.gauge("headrace.run.allowed_items_per_second", "{item}", "Items a second that the limits would let through; absent while that is not known."),
		efficiency:   i.gauge("headrace.run.efficiency", "1", "Items answered, of those that the limits would have let through since the start."),
		held:         i.gauge("headrace.items.held", "{item}", "Items taken from the input that wait; state is waiting, parked (after a refusal) or delayed (for themselves)."),
		inFlight:     i.gauge("headrace.calls.in_flight", "{call}", "Calls in flight."),
		inFlightMax:  i.gauge("headrace.calls.in_flight_max", "{call}", "Calls that may be in flight: the user's ceiling."),
		rate:         i.gauge("headrace.limit.rate", "{unit}", "What a limit of the provider is believed to let through, in units a second."),
		used:         i.gauge("headrace.limit.used", "1", "Share of that limit which was drawn over the last 10 seconds."),
		phase:        i.gauge("headrace.lane.phase", "{lane}", "Which phase a lane is in: 1 for that one, 0 for the others."),
		costMax:      i.gauge("headrace.cost.usd_max", "{USD}", "The user's cap, in US dollars; absent if there is none."),
		costSpent:    i.gauge("headrace.cost.usd_spent", "{USD}", "Spent against the cap, in US dollars; absent without a cap."),
		costReserved: i.gauge("headrace.cost.usd_reserved", "{USD}", "Reserved for calls in flight, in US dollars; absent without a cap."),
	}
}

// snapshotWriter shows the figures of one snapshot to an observer.
type snapshotWriter struct {
	*families
	to metric.Observer
}

func (s *snapshotWriter) show(of metric.Float64Observable, v float64, with ...attribute.KeyValue) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		s.to.ObserveFloat64(of, v, metric.WithAttributes(with...))
	}
}

// run shows the figures of the whole run.
func (s *snapshotWriter) run(snapshot *observe.Snapshot) {
	for by, d := range snapshot.Ledger {
		if d > 0 {
			s.show(s.bound, d.Seconds(), boundKey.String(limiter.Bound(by).String()))
		}
	}
	if snapshot.Total >= 0 {
		s.show(s.runItems, float64(snapshot.Total))
	}
	s.show(s.before, float64(snapshot.Before))
	if snapshot.Ends.Known {
		s.show(s.remaining, snapshot.Ends.Low.Seconds(), estimateKey.String("low"))
		s.show(s.remaining, snapshot.Ends.Likely.Seconds(), estimateKey.String("likely"))
		s.show(s.remaining, snapshot.Ends.High.Seconds(), estimateKey.String("high"))
	}
	s.show(s.allowed, snapshot.Allowed)
	if snapshot.Efficiency > 0 {
		s.show(s.efficiency, snapshot.Efficiency)
	}
	s.show(s.held, float64(snapshot.Waiting-snapshot.Parked-snapshot.Delayed), stateKey.String("waiting"))
	s.show(s.held, float64(snapshot.Parked), stateKey.String("parked"))
	s.show(s.held, float64(snapshot.Delayed), stateKey.String("delayed"))
	s.show(s.redistributed, float64(snapshot.Redistributed))
	s.show(s.inFlightMax, float64(snapshot.Concurrency))
	if snapshot.Money.Cap > 0 {
		s.show(s.costMax, snapshot.Money.Cap.USD())
		s.show(s.costSpent, snapshot.Money.Spent.USD())
		s.show(s.costReserved, snapshot.Money.Reserved.USD())
	}
	kinds := map[string]int{}
	for _, f := range snapshot.Failures {
		kinds[f.Kind] += f.Count
	}
	for kind, n := range kinds {
		s.show(s.itemsFailed, float64(n), kindKey.String(kind))
	}
}

// lanes shows the figures of each lane, and the items that ended before they had one: their lane is "".
func (s *snapshotWriter) lanes(snapshot *observe.Snapshot, times []observe.Times) {
	answers := map[string]int{}
	for k := range times {
		answers[times[k].Lane] = times[k].Answers.Count()
	}
	withoutLane := observe.Lane{Answered: snapshot.Answered, Failed: snapshot.Failed, NotRun: snapshot.NotRun}
	for k := range snapshot.Lanes {
		l := &snapshot.Lanes[k]
		withoutLane.Answered -= l.Answered
		withoutLane.Failed -= l.Failed
		withoutLane.NotRun -= l.NotRun
		s.ended(l.Name, l)
		s.counts(l, answers[l.Name])
		if l.LaneStatus.Name != "" && l.Name != observe.OtherLanes { // or else the run has no status of it
			s.status(l)
		}
	}
	if withoutLane.Answered+withoutLane.Failed+withoutLane.NotRun > 0 {
		s.ended("", &withoutLane)
	}
}

func (s *snapshotWriter) ended(lane string, l *observe.Lane) {
	laneAttr := laneKey.String(lane)
	s.show(s.items, float64(l.Answered), laneAttr, resultKey.String("succeeded"))
	s.show(s.items, float64(l.Failed), laneAttr, resultKey.String("failed"))
	s.show(s.items, float64(l.NotRun), laneAttr, resultKey.String("not_run"))
}

// counts shows what a lane has counted: calls by their outcome, tokens and cost.
func (s *snapshotWriter) counts(l *observe.Lane, answered int) {
	laneAttr := laneKey.String(l.Name)
	s.show(s.calls, float64(answered), laneAttr, outcomeKey.String("answered"))
	s.show(s.calls, float64(l.Throttled), laneAttr, outcomeKey.String("throttled"))
	s.show(s.calls, float64(l.Broke), laneAttr, outcomeKey.String("broke"))
	s.show(s.calls, float64(l.Calls-answered-l.Throttled-l.Broke), laneAttr, outcomeKey.String("failed"))
	s.show(s.truncated, float64(l.Truncated), laneAttr)
	s.show(s.tokens, float64(l.Spent.InputTokens), laneAttr, typeKey.String("input"))
	s.show(s.tokens, float64(l.Spent.CachedTokens), laneAttr, typeKey.String("cached"))
	s.show(s.tokens, float64(l.Spent.OutputTokens), laneAttr, typeKey.String("output"))
	s.show(s.costUSD, l.Spent.USD, laneAttr)
	s.show(s.costUnpriced, float64(l.Spent.Unpriced), laneAttr)
}

// status shows the state of a lane: its calls in flight, phase and limits.
func (s *snapshotWriter) status(l *observe.Lane) {
	laneAttr := laneKey.String(l.Name)
	s.show(s.inFlight, float64(l.InFlight), laneAttr)
	s.show(s.cooldowns, float64(l.Counters.Cooldowns), laneAttr)
	s.show(s.probes, float64(l.Counters.Probes), laneAttr)
	for phase := machine.Flowing; phase <= machine.Stopped; phase++ {
		inPhase := 0.0
		if l.Phase == phase {
			inPhase = 1
		}
		s.show(s.phase, inPhase, laneAttr, phaseKey.String(phase.String()))
	}
	for k := range l.View.Limits {
		if v := &l.View.Limits[k]; v.Known() {
			s.show(s.rate, v.Refill, laneAttr, limitKey.String(limitWords[k]), sourceKey.String(sourceWord(v)))
			s.show(s.used, l.Used[k], laneAttr, limitKey.String(limitWords[k]))
		}
	}
}

// sourceWord returns the source of a limit, in the word that /metrics has for it.
func sourceWord(v *limiter.LimitView) string {
	switch {
	case v.Source == limiter.Seen && v.Said:
		return "refusals"
	case v.Source == limiter.Seen:
		return "headers"
	}
	return v.Source.String()
}
