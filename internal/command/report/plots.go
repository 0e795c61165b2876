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

// newPlots returns the diagrams with at most so many points, and one more for each run; nil if there
// is nothing to draw.
func newPlots(r *Report, most int) *plots {
	all := 0
	for k := range r.runs {
		all += len(r.runs[k].Samples)
	}
	if all == 0 {
		return nil
	}
	p, group := &plots{}, (all+most-1)/most
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

// per returns a count a second, or in another unit of time; unknown of no time.
func per(n, seconds, unit float64) float64 {
	if seconds <= 0 {
		return math.NaN()
	}
	return n / seconds * unit
}

// known returns NaN for 0, which says that a value is not known.
func known(x float64) float64 {
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

// figures paints all plots but the band.
func (p *plots) figures(r *Report) []figure {
	plain := func(v float64) string { return shortNumber(v) }
	list := []figure{
		p.speed(r, plain),
		p.figure("Calls in flight", fmt.Sprintf("at most %s at once", words.Number(p.most())), plain,
			named{p.series(chart.Area, func(s *observe.Sample) float64 { return s.InFlight }), "mean"},
			named{p.series(chart.Second, func(s *observe.Sample) float64 { return float64(s.InFlightMost) }), "most"},
			named{p.ceiling(r), strings.TrimSuffix(fmt.Sprintf("-c %d", r.ceiling()), " 0")}),
		p.figure("How long an answer took", p.latencyWords(), func(v float64) string { return shortNumber(v) + " s" },
			named{p.series(chart.Line, quantile(0.5)), "p50"},
			named{p.series(chart.Second, quantile(0.95)), "p95"}),
		p.figure("Tokens a minute", fmt.Sprintf("%s in, %s out in all, of these runs", words.Number(p.tokens(true)), words.Number(p.tokens(false))), plain,
			named{p.series(chart.Line, func(s *observe.Sample) float64 { return per(float64(s.InputTokens), s.Span, 60) }), "in"},
			named{p.series(chart.Second, func(s *observe.Sample) float64 { return per(float64(s.OutputTokens), s.Span, 60) }), "out"}),
	}
	if f := p.cost(r); f != nil {
		list = append(list, *f)
	}
	return list
}

// named is a series with its name in the legend.
type named struct {
	chart.Series
	name string
}

func (p *plots) figure(title, desc string, label func(float64) string, series ...named) figure {
	f, plot := figure{title: title}, chart.Plot{Title: title, Desc: desc, Points: p.spans, Label: label}
	for _, s := range series {
		if s.Values == nil {
			continue
		}
		plot.Series = append(plot.Series, s.Series)
		f.legend = append(f.legend, legend{s.Look, s.name, func() []string { return inWords(s.Values, label) }})
	}
	f.svg = plot.SVG(p.axis)
	return f
}

// inWords returns values in the words of an axis; those that are not known are dashes.
func inWords(values []float64, label func(float64) string) (list []string) {
	for _, v := range values {
		text := "–"
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			text = label(v)
		}
		list = append(list, text)
	}
	return list
}

func (p *plots) speed(r *Report, label func(float64) string) figure {
	desc := "answered and failed items a second"
	if r.TookS > 0 {
		desc = fmt.Sprintf("%.1f items a second in the mean, %s refused by a rate limit", float64(p.ended())/r.TookS, words.Count(r.Throttled, "call"))
	}
	return p.figure("Items a second", desc, label,
		named{p.series(chart.Area, func(s *observe.Sample) float64 { return per(float64(s.Answered+s.Failed), s.Span, 1) }), "ended"},
		named{p.series(chart.Dashed, func(s *observe.Sample) float64 { return known(s.Allowed) }), "allowed by limits, windows and -c"},
		named{p.series(chart.Rug, func(s *observe.Sample) float64 { return float64(s.Throttled) }), "refusals (429)"})
}

// cost is the plot of money; nil if nothing has a price.
func (p *plots) cost(r *Report) *figure {
	sum := 0.0
	s := p.series(chart.Area, func(s *observe.Sample) float64 { sum += s.USD; return sum })
	if sum == 0 {
		return nil
	}
	series := []named{{s, "spent by these runs"}}
	if c := r.Spent.CapUSD; c != nil {
		series = append(series, named{p.constant(chart.Dotted, *c), "--max-cost " + words.Money(*c)})
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

// ceiling returns the -c of all runs; 0 if they had several.
func (r *Report) ceiling() int {
	for k := range r.runs {
		of := &r.runs[k]
		if n := of.Start.Concurrency; n > 0 && n != r.concurrency || slices.ContainsFunc(of.Changes, func(c event.Changed) bool { return c.What == "concurrency" }) {
			return 0
		}
	}
	return r.concurrency
}

// ceiling is the most calls that might be in flight: as each run began, and as it was changed.
func (p *plots) ceiling(r *Report) chart.Series {
	s := p.constant(chart.Dotted, float64(r.concurrency))
	from := func(at time.Time, n int) {
		for k := range s.Values {
			if n > 0 && p.spans[k].To.After(at) {
				s.Values[k] = float64(n)
			}
		}
	}
	for k := range r.runs {
		from(r.runs[k].At, r.runs[k].Start.Concurrency)
		for _, c := range r.runs[k].Changes {
			n, err := strconv.Atoi(c.To)
			if at, _ := time.Parse(time.RFC3339Nano, c.At); c.What == "concurrency" && err == nil {
				from(at, n)
			}
		}
	}
	return s
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

func (p *plots) tokens(in bool) (n int) {
	for k := range p.samples {
		if in {
			n += int(p.samples[k].InputTokens)
		} else {
			n += int(p.samples[k].OutputTokens)
		}
	}
	return n
}

func quantile(q float64) func(*observe.Sample) float64 {
	return func(s *observe.Sample) float64 { return known(s.Latency.Quantile(q).Seconds()) }
}

// latencyWords sums up the latencies of all samples.
func (p *plots) latencyWords() string {
	var all observe.Sample
	for k := range p.samples {
		all = all.Merge(observe.Sample{Latency: p.samples[k].Latency})
	}
	return fmt.Sprintf("p50 %s, p95 %s", words.Wait(all.Latency.Quantile(0.5)), words.Wait(all.Latency.Quantile(0.95)))
}

// shortNumber shows a number at an axis: 0.5, 12, 3.5k, 20M.
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

// bandKey returns the parts of the band: those of the largest bounds have colours of their own.
func (r *Report) bandKey() map[string]int {
	parts := map[string]int{}
	for k := range r.Bounds {
		parts[r.Bounds[k].Bound] = min(k, chart.Parts-1)
	}
	return parts
}

// band paints what held the runs back.
func (p *plots) band(r *Report) string {
	parts := r.bandKey()
	b := chart.Band{Title: "What held it back, over time", Desc: strings.Join(r.boundWords(), ", "), Points: p.spans}
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
		b.Shares = append(b.Shares, shares)
	}
	return b.SVG(p.axis)
}

// shares returns a function that says for each point which share of it a bound has held back; nil if there are no points.
func (p *plots) shares(word string) func() []string {
	if p == nil {
		return nil
	}
	return func() (list []string) {
		for k := range p.samples {
			of, whole := 0.0, 0.0
			for by, d := range p.samples[k].Bounds {
				if whole += d.Seconds(); limiter.Bound(by).String() == word {
					of += d.Seconds()
				}
			}
			text := "–"
			if whole > 0 {
				text = share(of / whole)
			}
			list = append(list, text)
		}
		return list
	}
}

// leastShare is the share of the time from which on a bound is named.
const leastShare = 0.001

// boundWords says what held the runs back, each with its time and its share. It leaves out what cannot be seen.
func (r *Report) boundWords() []string {
	var list []string
	for k, b := range r.Bounds {
		if k > 0 && b.Share < leastShare {
			break
		}
		list = append(list, fmt.Sprintf("%s %s (%s)", b.Name, lasted(b.Seconds), share(b.Share)))
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

func lasted(seconds float64) string {
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

// rows sums up the plots in a table, for those who cannot see them.
func (r *Report) rows() (list []row) {
	few := newPlots(r, max(1, mostRows-len(r.runs))) // each run may have one more
	if few == nil {
		return nil
	}
	for k := max(0, len(few.samples)-mostRows); k < len(few.samples); k++ {
		s := &few.samples[k]
		ledger := event.Seconds(s.Bounds)
		held := slices.SortedFunc(maps.Keys(ledger), func(a, b string) int {
			return cmp.Or(cmp.Compare(ledger[b], ledger[a]), cmp.Compare(a, b))
		})
		one := row{from: r.moment(few.spans[k].From), throttled: s.Throttled, inFlight: trimmed(s.InFlight)}
		one.speed, one.allowed = orDash(per(float64(s.Answered+s.Failed), s.Span, 1)), orDash(known(s.Allowed))
		one.p50, one.p95 = orDash(quantile(0.5)(s)), orDash(quantile(0.95)(s))
		if one.costs = "–"; s.USD > 0 {
			one.costs = words.Money(s.USD)
		}
		if len(held) > 0 {
			one.heldBy = event.BoundName(held[0], r.ceiling())
		}
		list = append(list, one)
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
