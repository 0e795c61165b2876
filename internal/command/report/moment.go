package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
)

// A Moment is how a run stands, as its live page shows it. Only the timeline of earlier runs is read from a file, and
// that once: a Moment can be made as often as somebody looks.
type Moment struct {
	Progress *event.Progress // nil: the run has not begun
	Earlier  []timeline.Run  // of the same output
	Began    time.Time
	Settings []event.Setting
	Samples  []observe.Sample // of this run
	Changes  []event.Changed  // of it, by headrace ctl
	Errors   string           // the file of failed items
	Over     bool             // the run has ended
	Summary  *event.Summary   // its outcome; nil: it goes on, or nobody has asked how it ended
	Zone     *time.Location

	Concurrency int // with which the run began

	Bare bool // leave out examples of failures and reasons of ends: they may quote prompts
}

// HTML returns the title and the body of the live page. It plots fewer points until the body fits in MaxBytes.
func (m *Moment) HTML() (title, body string) {
	if m.Progress == nil {
		p := &page{Report: &Report{}}
		if m.Over {
			p.printf("<h1>The run has ended before its first call</h1>\n<p>Its own output says why.</p>\n")
		} else {
			p.printf("<h1>The run has not begun</h1>\n<p>It reads and checks its input before the first call.</p>\n")
		}
		return "headrace", p.String()
	}
	r := m.toReport()
	for points := mostPoints; ; points /= 2 {
		p := &page{Report: r, pointed: true}
		p.writeMoment(m, newPlots(r, max(1, points)))
		if p.Len() <= MaxBytes || points <= 1 {
			return r.Verdict, p.String()
		}
	}
}

// toReport returns the moment as a report, from which the page is written.
func (m *Moment) toReport() *Report {
	p := m.Progress
	r := &Report{
		Headrace: account.Version(), At: p.At, State: Running, Verdict: doneWords(p),
		Output: p.Output, Errors: m.Errors, Provider: p.Provider,
		Items: p.Total, Done: p.Done - int(p.Failed), Failed: int(p.Failed), Filtered: p.Filtered, Spent: spentSoFar(p),
		bare: m.Bare, zone: m.Zone,
	}
	if m.Over {
		r.State = Ended
	}
	run := timeline.Run{
		At: m.Began, Merged: 1, Samples: m.Samples, Changes: m.Changes, Progress: p, Over: m.Over, Summary: m.Summary,
		Start: event.Start{Input: p.Input, Concurrency: m.Concurrency, Items: p.Total, Settings: m.Settings},
	}
	for _, name := range p.Models {
		r.Models = append(r.Models, Model{Model: name})
	}
	r.addRuns(slices.Concat(m.Earlier, []timeline.Run{run})) // a copy: others look at the same earlier runs
	r.addFailures(p.Failures, m.Bare)
	return r
}

// spentSoFar returns the cost of the run until now, in the form of a report.
func spentSoFar(p *event.Progress) Spent {
	s := Spent{USD: p.Spent.USD, Unpriced: p.Spent.Unpriced, InputTokens: p.Spent.InputTokens, CachedTokens: p.Spent.CachedTokens, OutputTokens: p.Spent.OutputTokens}
	switch {
	case s.USD != nil:
		s.Words = words.Cost(*s.USD, true, s.Unpriced)
	case p.Simulated:
		s.Words = "none (simulated)"
	default:
		s.Words = words.Cost(0, false, s.Unpriced)
	}
	s.Doubtful = words.Doubtful(p.Spent.Doubtful.Calls, p.Spent.Doubtful.InputTokens, p.Spent.Doubtful.OutputTokens)
	return s
}

// addFailures adds the failures of a run that is still going on, by kind. The list begins with the most
// frequent.
func (r *Report) addFailures(list []event.Failure, hideExamples bool) {
	indexOf := map[string]int{}
	for i := range list {
		failed := &list[i]
		k, known := indexOf[failed.Kind]
		if !known {
			k = len(r.Failures)
			indexOf[failed.Kind], r.Failures = k, append(r.Failures, Failure{Kind: words.Clip(failed.Kind, maxName)})
		}
		failure := &r.Failures[k]
		failure.Items += failed.Count
		if !hideExamples && len(failure.Examples) < mostExamples {
			failure.Examples = append(failure.Examples, Example{Line: failed.Example.Line, ID: words.Clip(failed.Example.ID, maxName), Message: words.Clip(failed.Example.Message, maxMessage)})
		}
	}
}

// doneWords returns how many items are done, in words.
func doneWords(p *event.Progress) string {
	text := words.Number(p.Done) + words.OneOr(p.Done, " item", " items") + " done"
	if p.Total != nil {
		text = words.Number(p.Done) + " of " + words.Number(*p.Total) + words.OneOr(*p.Total, " item", " items") + " done"
	}
	if p.Failed > 0 {
		text += ", " + words.Number(int(p.Failed)) + " failed in this run"
	}
	return text
}

// writeMoment writes the body of the live page.
func (p *page) writeMoment(moment *Moment, plots *plots) {
	p.writeHeading(p.momentWords(moment.Over, moment.Progress))
	if moment.Over {
		p.writeCards(p.cardList())
	} else {
		p.writeCards(p.cardsSoFar(moment.Progress))
	}
	p.writePoints(p.Report, plots)
	p.writeBounds(plots)
	if !moment.Over && moment.Progress.BoundWide != "" {
		p.printf("<p>Now: <strong>%s</strong></p>\n", moment.Progress.BoundWide)
	}
	p.writePlots(plots)
	p.writeFailures()
	p.writeLanes(moment.Progress.Lanes, moment.Over)
	p.writeRuns()
	p.writeChanges()
	p.writeSettings()
	p.writeProof()
	p.printf(`<p class="sub">headrace %s, as of %s. Failures and cost are those of this run; plots show earlier ones, too.</p>`+"\n", p.Headrace, p.at(p.At))
}

// momentWords returns sentences about what is unusual now; "" if nothing is.
func (p *page) momentWords(over bool, progress *event.Progress) string {
	var list []string
	switch {
	case over:
		list = append(list, "The run has ended: this is its last state.")
	case progress.State != observe.Running.String():
		list = append(list, fmt.Sprintf("The run is %s.", progress.State))
	}
	if progress.Simulated {
		list = append(list, "Simulated: no provider is asked.")
	}
	return strings.Join(list, " ")
}

// cardsSoFar are the cards of a run that goes on.
func (p *page) cardsSoFar(progress *event.Progress) []card {
	speed := card{"items a second", fmt.Sprintf("%.1f", progress.PerSecond), words.Count(progress.InFlight, "call") + " in flight, " + words.Number(progress.Waiting) + " waiting"}
	list := p.cardList()
	ends := card{"ends", cmp.Or(progress.EndsShort, "not known"), "it began " + durationText(progress.ElapsedS) + " ago"}
	return append([]card{ends, speed}, list[1:len(list)-1]...) // there is no time and no proof of the whole yet
}

// writeLanes writes the table of the lanes of a run.
func (p *page) writeLanes(lanes []event.Lane, over bool) {
	if len(lanes) == 0 {
		return
	}
	p.printf("<h2>Lanes</h2>\n")
	t := p.beginTable("lane", "answered", "failed", "refused", "in flight", "items/s", "p50", "cost", text("state"))
	for i := range lanes[:min(len(lanes), mostLanes)] {
		lane := &lanes[i]
		p50, cost, state := "–", "–", lane.Phase
		if lane.P50MS != nil {
			p50 = durationText(float64(*lane.P50MS) / 1e3)
		}
		if lane.USD != nil {
			cost = words.Money(*lane.USD)
		}
		if !over && lane.BoundShort != "" {
			state += ", held by " + lane.BoundShort
		}
		if lane.Cause != "" {
			state += ": " + words.Clip(lane.Cause, maxMessage)
		}
		t.row(lane.Name, words.Number(lane.Answered), words.Number(lane.Failed), words.Number(lane.Throttled), words.Number(lane.InFlight), trimmed(lane.DonePerS), p50, cost, text(state))
	}
	t.end()
	if more := len(lanes) - mostLanes; more > 0 {
		p.printf("<p>And %s.</p>\n", words.Count(more, "more lane"))
	}
}

// writeKey writes a name in a legend, and its value at each point if the page is pointed at.
func (p *page) writeKey(sign, text string, values func() []string) {
	p.printf("<span>%s %s", markup(sign), text)
	if p.pointed && values != nil {
		p.printf(` <b class="v" data-v="%s"></b>`, withoutRepeats(values()))
	}
	p.printf("</span> ")
}

// writePoints writes the position and the time of each point of the plots, for the script of the live page.
func (p *page) writePoints(report *Report, plots *plots) {
	if !p.pointed || plots == nil {
		return
	}
	var positions, times []string
	for _, s := range plots.spans {
		positions, times = append(positions, fmt.Sprintf("%.1f", plots.axis.X(s.From))), append(times, report.moment(s.From))
	}
	p.printf(`<p id="moments" data-x="%s" data-t="%s" hidden></p>`+"\n", strings.Join(positions, "|"), withoutRepeats(times))
}

// withoutRepeats joins texts for an attribute. A text that repeats the one before it is left empty.
func withoutRepeats(texts []string) string {
	var b strings.Builder
	for k, text := range texts {
		if k > 0 {
			b.WriteByte('|')
		}
		if k == 0 || text != texts[k-1] {
			b.WriteString(text)
		}
	}
	return b.String()
}

// Samples keeps the samples of a run in bounded memory: from MostSamples on, neighbours merge. The zero value is empty,
// and only one goroutine may use it.
type Samples struct {
	list    []observe.Sample
	span    int // samples of a second in one of the list
	growing int // of these, in the last
}

// MostSamples is about three for each point of a plot.
const MostSamples = 3 * mostPoints

// Add stores the next sample. If the list is full, neighbours are merged first.
func (s *Samples) Add(sample observe.Sample) {
	s.span = max(1, s.span)
	if n := len(s.list); n > 0 && s.growing < s.span {
		s.list[n-1] = s.list[n-1].Merge(sample)
		s.growing++
		return
	}
	if len(s.list) >= MostSamples {
		merged := s.list[:0:0]
		for k := 0; k+1 < len(s.list); k += 2 {
			merged = append(merged, s.list[k].Merge(s.list[k+1]))
		}
		s.list, s.span = merged, 2*s.span
	}
	s.list, s.growing = append(s.list, sample), 1
}

// All returns a copy of the list.
func (s *Samples) All() []observe.Sample { return append([]observe.Sample(nil), s.list...) }

// Style returns the style sheet of reports, and of the live page.
func Style() string { return style }
