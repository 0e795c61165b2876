package observe

import (
	"math"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// gauges holds integrals over time, in seconds, of the values that a sample gives as means.
type gauges struct {
	span                               float64
	inFlight, waiting, parked, delayed float64
	most                               int // in flight
	allowed, allowedSpan               float64
}

// note adds a gap that ended with the given status.
func (g *gauges) note(s *batch.Status, allowing float64, gap time.Duration) {
	dt := gap.Seconds()
	g.span += dt
	g.inFlight += float64(s.Run.InFlight) * dt
	g.waiting += float64(s.Run.Held) * dt
	g.parked += float64(s.Run.Parked) * dt
	g.delayed += float64(s.Run.Delayed) * dt
	g.most = max(g.most, s.Run.InFlight)
	if allowing > 0 && !math.IsInf(allowing, 1) {
		g.allowed, g.allowedSpan = g.allowed+allowing*dt, g.allowedSpan+dt
	}
}

// per returns a mean; 0 over no time.
func per(sum, span float64) float64 {
	if span == 0 {
		return 0
	}
	return sum / span
}

// sample closes the sample of what has happened since the latest one, and returns a copy of it;
// nil if nothing happened.
func (r *Recorder) sample() *Sample {
	t, g, elapsed := &r.run.span, &r.gauges, r.elapsed()
	if elapsed == r.sampled && t.empty() {
		return nil
	}
	bounds := r.account.minus(&r.reported)
	s := Sample{
		At: r.at, Elapsed: elapsed.Seconds(), Span: (elapsed - r.sampled).Seconds(),
		Answered: t.answered, Failed: t.failed, Calls: t.calls, Throttled: t.throttled, Broke: t.broke,
		InputTokens: t.used.InputTokens, OutputTokens: t.used.OutputTokens, CachedTokens: t.used.CachedTokens,
		USD: t.usd, Unpriced: t.unpriced,
		InFlight: per(g.inFlight, g.span), InFlightMost: g.most, Waiting: per(g.waiting, g.span),
		Parked: per(g.parked, g.span), Delayed: per(g.delayed, g.span),
		Allowed: per(g.allowed, g.allowedSpan), AllowedSpan: g.allowedSpan,
		Bounds: bounds.ledger(), Latency: t.answers.buckets(), Lanes: r.laneSamples(),
	}
	r.sampled, r.reported, r.gauges = elapsed, r.account, gauges{}
	for _, of := range append(r.lanes[:], r.run) {
		if of != nil {
			of.span = tally{}
		}
	}
	r.forecast.note(&s)
	r.timeline.add(s)
	told := r.timeline.copy(&s)
	return &told
}

// laneSamples returns the busiest lanes since the latest sample.
func (r *Recorder) laneSamples() []LaneSample {
	var lanes []LaneSample
	for _, of := range r.lanes[:noSlot] {
		if of != nil && !of.span.empty() {
			lanes = append(lanes, LaneSample{Name: of.name, Answered: of.span.answered, Throttled: of.span.throttled})
		}
	}
	lanes = busiest(lanes)
	for k := range lanes {
		r.believed(&lanes[k])
	}
	return lanes
}

// believed adds the phase and the believed limits of a lane.
func (r *Recorder) believed(l *LaneSample) {
	l.Limits = map[string]float64{}
	s := r.told(l.Name)
	if s == nil {
		return
	}
	l.Phase = s.Phase.String()
	for d := range limiter.Dimensions {
		if limit := &s.View.Limits[d]; limit.Known() {
			l.Limits[limitNames[d]] = limit.Refill
		}
	}
}
