package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/report/chart"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// mostPoints is the number of points in a plot: about one for two of the units that it is wide. The plots
// then take about half of MaxBytes.
const mostPoints = 360

// plots are all diagrams of a report, on one axis of time.
type plots struct {
	axis    *chart.Axis
	spans   []chart.Span
	samples []observe.Sample
}

// newPlots returns the plots with about most points, and one more for each run; nil if there is nothing to
// draw. It merges samples until they fit.
func newPlots(r *Report, most int) *plots {
	samplesOfAll := 0
	for k := range r.runs {
		samplesOfAll += len(r.runs[k].Samples)
	}
	if samplesOfAll == 0 {
		return nil
	}
	p, group := &plots{}, (samplesOfAll+most-1)/most
	var runs []chart.Span
	for k := range r.runs {
		samples := r.runs[k].Samples
		if len(samples) == 0 {
			continue
		}
		first := len(p.spans)
		for len(samples) > 0 {
			n := min(group, len(samples))
			sum := samples[0]
			for i := range samples[1:n] {
				sum = sum.Merge(samples[1+i])
			}
			samples = samples[n:]
			began := sum.At.Add(-time.Duration(sum.Span * float64(time.Second)))
			if n := len(p.spans); n > 0 && began.Before(p.spans[n-1].To) {
				began = p.spans[n-1].To
			}
			if sum.At.Before(began) { // a clock was set back
				sum.At = began
			}
			p.samples = append(p.samples, sum)
			p.spans = append(p.spans, chart.Span{From: began, To: sum.At})
		}
		runs = append(runs, chart.Span{From: p.spans[first].From, To: p.spans[len(p.spans)-1].To})
	}
	p.axis = chart.NewAxis(runs, r.zone)
	p.axis.Marks = r.changedAt()
	return p
}

// series returns a value of each sample.
func (p *plots) series(look chart.Look, of func(*observe.Sample) float64) chart.Series {
	s := chart.Series{Look: look, Values: make([]float64, len(p.samples))}
	for k := range p.samples {
		s.Values[k] = of(&p.samples[k])
	}
	return s
}

// ratePer returns a count a second, or in another unit of time; unknown of no time.
func ratePer(n, seconds, unit float64) float64 {
	if seconds <= 0 {
		return math.NaN()
	}
	return n / seconds * unit
}

// nanIfZero returns NaN for 0, which says that a value is not known.
func nanIfZero(x float64) float64 {
	if x == 0 {
		return math.NaN()
	}
	return x
}

// legend is a name in the legend of a plot.
type legend struct {
	look   chart.Look
	text   string
	values func() []string // of each point, in words
}

// figure is a plot with its legend.
type figure struct {
	title  string
	legend []legend
	svg    string
}

// figures draws all plots except the one of the bounds.
func (p *plots) figures(r *Report) []figure {
	plain := func(v float64) string { return shortNumber(v) }
	list := []figure{
		p.speedFigure(r, plain),
		p.figure("Calls in flight", fmt.Sprintf("at most %s at once", words.Number(p.most())), plain,
			namedSeries{p.series(chart.Area, func(s *observe.Sample) float64 { return s.InFlight }), "mean"},
			namedSeries{p.series(chart.Second, func(s *observe.Sample) float64 { return float64(s.InFlightMost) }), "most"},
			namedSeries{p.concurrencySeries(r), strings.TrimSuffix(fmt.Sprintf("-c %d", r.sharedConcurrency()), " 0")}),
		p.figure("How long an answer took", p.latencyWords(), func(v float64) string { return shortNumber(v) + " s" },
			namedSeries{p.series(chart.Line, quantile(0.5)), "p50"},
			namedSeries{p.series(chart.Second, quantile(0.95)), "p95"}),
		p.figure("Tokens a minute", fmt.Sprintf("%s in, %s out in all, of these runs", words.Number(p.sum(inputTokens)), words.Number(p.sum(outputTokens))), plain,
			namedSeries{p.series(chart.Line, func(s *observe.Sample) float64 { return ratePer(inputTokens(s), s.Span, 60) }), "in"},
			namedSeries{p.series(chart.Second, func(s *observe.Sample) float64 { return ratePer(outputTokens(s), s.Span, 60) }), "out"}),
	}
	if f := p.costFigure(r); f != nil {
		list = append(list, *f)
	}
	return list
}

// namedSeries is a series with its name in the legend.
type namedSeries struct {
	chart.Series
	name string
}

// figure draws one plot with its legend, and leaves out series without values.
func (p *plots) figure(title, desc string, label func(float64) string, series ...namedSeries) figure {
	f, plot := figure{title: title}, chart.Plot{Title: title, Desc: desc, Points: p.spans, Label: label}
	for _, s := range series {
		if s.Values == nil {
			continue
		}
		plot.Series = append(plot.Series, s.Series)
		f.legend = append(f.legend, legend{s.Look, s.name, func() []string { return labelsOf(s.Values, label) }})
	}
	f.svg = plot.SVG(p.axis)
	return f
}

// labelsOf returns the label of each value; unknown values are dashes.
func labelsOf(values []float64, label func(float64) string) (list []string) {
	for _, v := range values {
		text := "–"
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			text = label(v)
		}
		list = append(list, text)
	}
	return list
}

// speedFigure draws the items a second, next to what the limits allow and the refusals.
func (p *plots) speedFigure(r *Report, label func(float64) string) figure {
	desc := "answered and failed items a second"
	if r.TookS > 0 {
		desc = fmt.Sprintf("%.1f items a second in the mean, %s refused by a rate limit", float64(p.ended())/r.TookS, words.Count(r.Throttled, "call"))
	}
	return p.figure("Items a second", desc, label,
		namedSeries{p.series(chart.Area, func(s *observe.Sample) float64 { return ratePer(float64(s.Answered+s.Failed), s.Span, 1) }), "ended"},
		namedSeries{p.series(chart.Dashed, func(s *observe.Sample) float64 { return nanIfZero(s.Allowed) }), "allowed by limits, windows and -c"},
		namedSeries{p.series(chart.Rug, func(s *observe.Sample) float64 { return float64(s.Throttled) }), "refusals (429)"})
}

// costFigure draws the cost over time; nil if nothing has a price.
func (p *plots) costFigure(r *Report) *figure {
	sum := 0.0
	s := p.series(chart.Area, func(s *observe.Sample) float64 { sum += s.USD; return sum })
	if sum == 0 {
		return nil
	}
	series := []namedSeries{{s, "spent by these runs"}}
	if c := r.Spent.CapUSD; c != nil {
		series = append(series, namedSeries{p.constant(chart.Dotted, *c), "--max-cost " + words.Money(*c)})
	}
	f := p.figure("Cost in USD", words.Money(sum)+" in all, of these runs", words.Money, series...)
	return &f
}

// constant is a value that does not change; no series if it is not known.
func (p *plots) constant(look chart.Look, v float64) chart.Series {
	if v == 0 {
		return chart.Series{}
	}
	return p.series(look, func(*observe.Sample) float64 { return v })
}

// sharedConcurrency returns the -c of all runs; 0 if they had several.
func (r *Report) sharedConcurrency() int {
	for k := range r.runs {
		of := &r.runs[k]
		if n := of.Start.Concurrency; n > 0 && n != r.concurrency || slices.ContainsFunc(of.Changes, func(c event.Changed) bool { return c.What == "concurrency" }) {
			return 0
		}
	}
	return r.concurrency
}

// concurrencySeries returns the most calls that may be in flight over time: as each run began, and as
// headrace ctl changed it.
func (p *plots) concurrencySeries(r *Report) chart.Series {
	series := p.constant(chart.Dotted, float64(r.concurrency))
	setFrom := func(at time.Time, n int) {
		for k := range series.Values {
			if n > 0 && p.spans[k].To.After(at) {
				series.Values[k] = float64(n)
			}
		}
	}
	for k := range r.runs {
		setFrom(r.runs[k].At, r.runs[k].Start.Concurrency)
		for _, change := range r.runs[k].Changes {
			n, err := strconv.Atoi(change.To)
			if at, _ := time.Parse(time.RFC3339Nano, change.At); change.What == "concurrency" && err == nil {
				setFrom(at, n)
			}
		}
	}
	return series
}

func (p *plots) ended() (n int) {
	for k := range p.samples {
		n += p.samples[k].Answered + p.samples[k].Failed
	}
	return n
}

func (p *plots) most() (n int) {
	for k := range p.samples {
		n = max(n, p.samples[k].InFlightMost)
	}
	return n
}

func inputTokens(s *observe.Sample) float64  { return float64(s.InputTokens) }
func outputTokens(s *observe.Sample) float64 { return float64(s.OutputTokens) }

// sum returns the sum of a count over all samples.
func (p *plots) sum(count func(*observe.Sample) float64) (n int) {
	for k := range p.samples {
		n += int(count(&p.samples[k]))
	}
	return n
}

func quantile(q float64) func(*observe.Sample) float64 {
	return func(s *observe.Sample) float64 { return nanIfZero(s.Latency.Quantile(q).Seconds()) }
}

// latencyWords sums up the latencies of all samples.
func (p *plots) latencyWords() string {
	var all observe.Sample
	for k := range p.samples {
		all = all.Merge(observe.Sample{Latency: p.samples[k].Latency})
	}
	return fmt.Sprintf("p50 %s, p95 %s", words.Wait(all.Latency.Quantile(0.5)), words.Wait(all.Latency.Quantile(0.95)))
}

// shortNumber returns a number for an axis, such as 0.5, 12, 3.5k or 20M.
func shortNumber(v float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= unit.of {
			if unit.name == "k" {
				unit.of = 1e3
			}
			return trimmed(v/unit.of) + unit.name
		}
	}
	return trimmed(v)
}

// trimmed shows a number with three digits that matter, and never with an exponent up to five of them.
func trimmed(v float64) string {
	if v >= 999.5 && v < 1e5 { // from here on %.3g has an exponent
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", math.Round(v*1e6)/1e6)
}

// partsOfBounds returns the parts of the band: those of the largest bounds have colours of their own.
func (r *Report) partsOfBounds() map[string]int {
	parts := map[string]int{}
	for k := range r.Bounds {
		parts[r.Bounds[k].Bound] = min(k, chart.Parts-1)
	}
	return parts
}

// paintBounds draws the share of each bound over time.
func (p *plots) paintBounds(r *Report) string {
	parts := r.partsOfBounds()
	band := chart.Band{Title: "What held it back, over time", Desc: strings.Join(r.boundWords(), ", "), Points: p.spans}
	for k := range p.samples {
		shares, whole := make([]float64, chart.Parts), 0.0
		for _, d := range p.samples[k].Bounds {
			whole += d.Seconds()
		}
		for by, d := range p.samples[k].Bounds {
			if d > 0 {
				part, ok := parts[limiter.Bound(by).String()]
				if !ok {
					part = chart.Parts - 1
				}
				shares[part] += d.Seconds() / whole
			}
		}
		band.Shares = append(band.Shares, shares)
	}
	return band.SVG(p.axis)
}

// sharesHeldBy returns a function that lists, for each point, the share of the time in which a bound held the
// runs back. It is nil if there are no points.
func (p *plots) sharesHeldBy(word string) func() []string {
	if p == nil {
		return nil
	}
	return func() (list []string) {
		for k := range p.samples {
			held, whole := 0.0, 0.0
			for by, d := range p.samples[k].Bounds {
				if whole += d.Seconds(); limiter.Bound(by).String() == word {
					held += d.Seconds()
				}
			}
			text := "–"
			if whole > 0 {
				text = share(held / whole)
			}
			list = append(list, text)
		}
		return list
	}
}

// leastShare is the share of the time from which on a bound is named.
const leastShare = 0.001

// boundWords lists what held the runs back, each with its time and share. It leaves out bounds too small to
// be seen.
func (r *Report) boundWords() []string {
	var list []string
	for k, b := range r.Bounds {
		if k > 0 && b.Share < leastShare {
			break
		}
		list = append(list, fmt.Sprintf("%s %s (%s)", b.Name, durationText(b.Seconds), share(b.Share)))
	}
	return list
}

// share shows a part of the time: one that can be seen is not 0 %.
func share(x float64) string {
	if x > 0 && x < 0.005 {
		return "< 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func durationText(seconds float64) string {
	return words.Lasted(time.Duration(math.Round(seconds*1e3)) * time.Millisecond)
}

// A row of the table that says the same as the plots.
type row struct {
	from                                      string
	speed, allowed, inFlight, p50, p95, costs string
	throttled                                 int
	heldBy                                    string
}

// mostRows is the number of rows of that table.
const mostRows = 60

// tableRows returns the plots as rows of a table, for those who cannot see them.
func (r *Report) tableRows() (list []row) {
	coarse := newPlots(r, max(1, mostRows-len(r.runs))) // each run may have one more
	if coarse == nil {
		return nil
	}
	for k := max(0, len(coarse.samples)-mostRows); k < len(coarse.samples); k++ {
		sample := &coarse.samples[k]
		ledger := event.Seconds(sample.Bounds)
		held := slices.SortedFunc(maps.Keys(ledger), func(a, b string) int {
			return cmp.Or(cmp.Compare(ledger[b], ledger[a]), cmp.Compare(a, b))
		})
		tableRow := row{from: r.moment(coarse.spans[k].From), throttled: sample.Throttled, inFlight: trimmed(sample.InFlight)}
		tableRow.speed, tableRow.allowed = orDash(ratePer(float64(sample.Answered+sample.Failed), sample.Span, 1)), orDash(nanIfZero(sample.Allowed))
		tableRow.p50, tableRow.p95 = orDash(quantile(0.5)(sample)), orDash(quantile(0.95)(sample))
		if tableRow.costs = "–"; sample.USD > 0 {
			tableRow.costs = words.Money(sample.USD)
		}
		if len(held) > 0 {
			tableRow.heldBy = event.BoundName(held[0], r.sharedConcurrency())
		}
		list = append(list, tableRow)
	}
	return list
}

func orDash(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return trimmed(v)
}

// moment shows a time of day, with the day if the runs last longer.
func (r *Report) moment(t time.Time) string {
	layout := "15:04:05"
	if n := len(r.runs); n > 0 && r.runs[n-1].Ended().Sub(r.runs[0].At) > 20*time.Hour {
		layout = "2 Jan 15:04:05"
	}
	return t.In(r.zone).Format(layout)
}
