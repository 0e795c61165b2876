package report

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/report/chart"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
)

// MaxBytes is the greatest length of a page: a mail takes it, and a browser opens it at once.
const MaxBytes = 200 << 10

// pageMark begins each page. Only a file that begins so is replaced.
const pageMark = "<!doctype html><!-- headrace report -->"

//go:embed style.css
var style string

// markup is text that stands in a page as it is.
type markup string

// page is a page under way.
type page struct {
	strings.Builder
	*Report
	pointed bool // it has the figures of each moment, for the script of the live page
}

// printf writes a format with its arguments. Every argument except markup is escaped: formats are part of the
// program, and all else may be a text of others.
func (p *page) printf(format markup, args ...any) {
	for k, arg := range args {
		switch value := arg.(type) {
		case markup, int:
		default:
			escaped := html.EscapeString(printable.Line(fmt.Sprint(value)))
			args[k] = strings.ReplaceAll(escaped, "://", "&#58;//") // mails make links of addresses
		}
	}
	fmt.Fprintf(p, string(format), args...)
}

// HTML returns the report as a page. If it would be longer than MaxBytes, its plots get fewer points.
func (r *Report) HTML() string {
	for points := mostPoints; ; points /= 2 {
		p := &page{Report: r}
		p.write(newPlots(r, max(1, points)))
		if p.Len() <= MaxBytes || points <= 1 {
			return p.String()
		}
	}
}

// write writes the whole page of a report.
func (p *page) write(plots *plots) {
	p.begin(p.name())
	p.writeHeading(p.stateWords())
	p.writeCards(p.cardList())
	p.writeBounds(plots)
	p.writeSheets()
	p.writePlots(plots)
	p.writeFailures()
	p.writeWaits()
	p.writeCosts()
	p.writeRuns()
	p.writeChanges()
	p.writeSettings()
	p.writeProof()
	p.end(p.Headrace, p.At)
}

// begin begins a page, and end ends it.
func (p *page) begin(of string) {
	p.printf(pageMark+`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`+
		`<meta name="referrer" content="no-referrer"><title>headrace: %s</title><style>%s</style></head><body><main>`, of, markup(style))
}

func (p *page) end(version, at string) {
	p.printf(`<p class="sub">headrace %s, made at %s. This page loads nothing and runs no script.</p></main></body></html>`+"\n", version, at)
}

// writeHeading says what became of which run, and what is unusual about it.
func (p *page) writeHeading(note string) {
	p.printf("<h1>%s</h1>\n", p.Verdict)
	p.printf(`<p class="sub">%s</p>`+"\n", p.subtitle())
	if note != "" {
		p.printf(`<p class="note"><strong>%s</strong></p>`+"\n", note)
	}
}

// subtitle names the run: its input and output, models, provider and time.
func (r *Report) subtitle() string {
	text := r.name()
	if r.Input != "" {
		text = r.Input + " → " + text
	}
	var models []string
	for _, m := range r.Models {
		if m.Model != "" { // bad lines have none
			models = append(models, m.Model)
		}
	}
	if len(models) > 0 {
		named := models[:min(len(models), 3)]
		text += ", " + strings.Join(named, ", ")
		if more := len(models) - len(named) + r.moreModels; more > 0 {
			text += " and " + words.Count(more, "more model")
		}
	}
	if r.Provider != "" {
		text += " on " + r.Provider
	}
	if n := len(r.runs); n > 0 {
		from, to, layout := r.runs[0].At.In(r.zone), r.runs[n-1].Ended().In(r.zone), "2 Jan 2006 15:04 MST"
		if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
			layout = "15:04 MST"
		}
		text += ", " + from.Format("2 Jan 2006 15:04") + " to " + to.Format(layout)
		if r.OfRuns > 1 {
			text += ", in " + words.Count(r.OfRuns, "run")
		}
	}
	return text
}

// name returns the name of what the report is about: an output, a job, or both.
func (r *Report) name() string {
	switch {
	case r.Job == nil:
		return r.Output
	case r.Output == "":
		return "job " + r.Job.Name
	}
	return r.Output + ", job " + r.Job.Name
}

// stateWords returns sentences about what is unusual in the latest run; "" if nothing is.
func (r *Report) stateWords() string {
	var list []string
	switch {
	case r.Job != nil:
		list = append(list, r.Job.stateWords())
	case r.State == Running:
		list = append(list, "The run goes on: these are the figures so far.")
	case r.State == Killed:
		list = append(list, "The latest run was killed, or its machine went down: the same command resumes it.")
	}
	if r.Simulated > 0 {
		list = append(list, fmt.Sprintf("Simulated: no provider was asked for %s %s.", words.Number(r.Simulated), words.OneOr(r.Simulated, "item", "items")))
	}
	if !r.Timeline && r.Job == nil {
		list = append(list, "There is no timeline of the runs, so that their plots, times and calls are missing.")
	}
	if r.Torn > 0 && r.State != Running {
		list = append(list, "The last line of the output is not whole: the next run repairs it.")
	}
	return strings.Join(list, " ")
}

// card is a figure at the top.
type card struct{ name, value, note string }

// cardList returns the figures at the top of the report: time, cost, refusals and proof.
func (r *Report) cardList() []card {
	took, more := "not known", "there is no timeline"
	if r.Timeline {
		if took, more = durationText(r.TookS), ""; r.Efficiency != nil {
			more = fmt.Sprintf("%.1f %% of the best possible under the limits", 100**r.Efficiency)
			if r.OfRuns > 1 {
				more += ", in the latest run"
			}
		}
	}
	first, proof := card{"took", took, more}, r.proofCard()
	if r.Job != nil {
		first, proof = r.Job.cardsOfJob(r.Proved)
	}
	list := []card{first}
	cost := card{"cost", r.Spent.Words, ""}
	if r.Spent.USD != nil {
		if cost.value = words.Money(*r.Spent.USD); r.Spent.Unpriced > 0 {
			cost.value = "at least " + cost.value
			cost.note = words.Unpriced(r.Spent.Unpriced) + " not counted"
		}
	}
	if r.Spent.CapUSD != nil {
		cost.note = strings.TrimPrefix(cost.note+", --max-cost "+words.Money(*r.Spent.CapUSD), ", ")
	}
	list = append(list, cost)
	if r.Timeline {
		refused := card{"refused", words.Number(r.Throttled) + words.OneOr(r.Throttled, " call", " calls"), "of " + words.Number(r.Calls)}
		if r.Cooldowns > 0 {
			refused.note += ", in " + words.Count(r.Cooldowns, "wave")
		}
		list = append(list, refused)
	}
	return append(list, proof)
}

// proofCard returns the card that shows whether the latest run has proved that it lost nothing.
func (r *Report) proofCard() card {
	switch {
	case r.Proved == nil && r.State == Running:
		return card{"proof", "not yet", "a run proves at its end that it has lost nothing"}
	case r.Proved == nil:
		return card{"proof", "none", "the latest run has not said how it ended; nothing that was saved is bought again"}
	case *r.Proved:
		return card{"proof", "holds ✓", "nothing lost, nothing bought twice"}
	}
	return card{"proof", "does not hold", "this is a fault of headrace: please report it"}
}

func (p *page) writeCards(list []card) {
	p.printf(`<div class="cards">`)
	for _, c := range list {
		p.printf(`<div class="card">%s<br><b>%s</b><br><span class="sub">%s</span></div>`, c.name, c.value, c.note)
	}
	p.printf("</div>\n")
}

// writeBounds writes what held the runs back, and its plot over time.
func (p *page) writeBounds(plots *plots) {
	if len(p.Bounds) == 0 {
		return
	}
	p.printf(`<h2>What held it back</h2><p class="keys">`)
	parts := p.partsOfBounds()
	for k, text := range p.boundWords() {
		p.writeKey(chart.Swatch(parts[p.Bounds[k].Bound]), text, plots.sharesHeldBy(p.Bounds[k].Bound))
	}
	p.printf("</p>\n")
	if plots != nil {
		p.writePlot("What held it back, over time", plots.paintBounds(p.Report))
	}
}

// writePlot writes a drawing, which a narrow screen scrolls.
func (p *page) writePlot(title, svg string) {
	p.printf(`<div class="plot" role="group" tabindex="0" aria-label="%s">%s</div>`+"\n", title, markup(svg))
}

// writeFigures writes plots with their legends.
func (p *page) writeFigures(list []figure) {
	for _, f := range list {
		p.printf(`<section><h3>%s</h3><p class="keys">`, f.title)
		for _, l := range f.legend {
			p.writeKey(chart.Sign(l.look), l.text, l.values)
		}
		p.printf("</p>\n")
		p.writePlot(f.title, f.svg)
		p.printf("</section>\n")
	}
}

// writePlots writes all plots, and below them the same figures as a table.
func (p *page) writePlots(plots *plots) {
	if plots == nil {
		return
	}
	p.writeFigures(plots.figures(p.Report))
	p.printf(`<details><summary>The plots as a table</summary>`)
	rows := p.tableRows()
	t := p.beginTable("from", "items/s", "allowed/s", "in flight", "p50 s", "p95 s", "refused", "cost", text("held back by"))
	for _, row := range rows {
		t.row(row.from, row.speed, row.allowed, row.inFlight, row.p50, row.p95, words.Number(row.throttled), row.costs, text(row.heldBy))
	}
	t.end()
	p.printf("</details>\n")
}

// text is a cell of words, which stand at its left; all others but the first are figures.
type text string

// table is a table under way.
type table struct{ p *page }

// beginTable begins a table with these heads; the caller adds rows and ends it.
func (p *page) beginTable(heads ...any) table {
	p.printf(`<div class="wide" role="group" tabindex="0" aria-label="Table"><table><thead><tr>`)
	for _, h := range heads {
		if of, ok := h.(text); ok {
			p.printf(`<th scope="col" class="t">%s</th>`, string(of))
		} else {
			p.printf(`<th scope="col">%s</th>`, h)
		}
	}
	p.printf("</tr></thead><tbody>\n")
	return table{p}
}

// row writes a row. Cells of type text are aligned like words, all others like figures.
func (t table) row(cells ...any) {
	t.p.printf("<tr>")
	for _, c := range cells {
		if of, ok := c.(text); ok {
			t.p.printf(`<td class="t">%s</td>`, string(of))
		} else {
			t.p.printf("<td>%s</td>", fmt.Sprint(c))
		}
	}
	t.p.printf("</tr>\n")
}

func (t table) end() { t.p.printf("</tbody></table></div>\n") }

// writeFailures writes the kinds of failure with examples, and advice about them.
func (p *page) writeFailures() {
	p.printf("<h2>What failed, and why</h2>\n")
	if p.Failed == 0 {
		p.printf("<p>Nothing.</p>\n")
	} else {
		t := p.beginTable("kind", "items", "share", text("examples"))
		for _, f := range p.Failures {
			p.printf(`<tr><td>%s</td><td>%s</td><td>%s</td><td class="t">`, f.Kind, words.Number(f.Items), p.share(f.Items))
			for k, e := range f.Examples {
				if k > 0 {
					p.printf("<br>")
				}
				p.printf(`<code>%s</code>`, e.words())
			}
			p.printf("</td></tr>\n")
		}
		t.end()
	}
	for _, line := range p.advice() {
		p.printf("<p>%s<code>%s</code></p>\n", line[0], line[1])
	}
}

// share shows a part of all items that have ended.
func (r *Report) share(n int) string {
	if r.Done+r.Failed == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(r.Done+r.Failed))
}

// words returns the example in one line: its place, its id and its message.
func (e *Example) words() string {
	place := "line " + words.Number(e.Line)
	if e.File != "" {
		place += " of " + e.File
	}
	if e.ID != "" {
		place += ", id " + e.ID
	}
	return place + ": " + e.Message
}

// advice returns what to do about items that failed or were cut off. Each line is words and a command.
func (r *Report) advice() (lines [][2]string) {
	switch {
	case r.Failed > 0 && r.Job != nil:
		lines = r.Job.advice()
	case r.Failed > 0:
		lines = append(lines, [2]string{"All of them: ", "headrace export " + settings.ShellQuote(r.Output) + r.errorsFlag() + " --failed --format md"}, [2]string{"To ask them again, add to the same command: ", "--retry-failed"})
	}
	if r.Truncated > 0 {
		lines = append(lines, [2]string{fmt.Sprintf("%s %s cut off at %s max_tokens. To let them be longer, raise ", words.Count(r.Truncated, "answer"), words.OneOr(r.Truncated, "was", "were"), words.OneOr(r.Truncated, "its", "their")), "max_tokens"})
	}
	if r.Filtered > 0 {
		lines = append(lines, [2]string{fmt.Sprintf("A content filter cut short or emptied %s. To count them as failed, add ", words.Count(r.Filtered, "answer")), "--filtered fail"})
	}
	return lines
}

// errorsFlag names the errors file where it is not the usual one.
func (r *Report) errorsFlag() string {
	if r.Errors == journal.ErrorsPath(r.Output) {
		return ""
	}
	return " --errors " + settings.ShellQuote(r.Errors)
}

// writeWaits writes the table of where the time of items went.
func (p *page) writeWaits() {
	if len(p.Waits) == 0 {
		return
	}
	p.printf("<h2>Where an item's time went</h2>\n")
	t := p.beginTable("an item", "p50", "p95", "sum of all")
	for _, w := range p.Waits {
		t.row(w.What, durationText(w.P50S), durationText(w.P95S), durationText(w.SumS))
	}
	t.end()
}

// writeCosts writes the tables of tokens and cost, by model and by lane.
func (p *page) writeCosts() {
	p.printf("<h2>Cost</h2>\n")
	t := p.beginTable("model", "items", "of these failed", "tokens in", "of these cached", "tokens out", "cost")
	for _, m := range p.Models {
		t.row(m.Model, words.Number(m.Items), words.Number(m.Failed), words.Number(int(m.InputTokens)), words.Number(int(m.CachedTokens)), words.Number(int(m.OutputTokens)), words.Cost(m.USD, m.Priced > 0, m.Unpriced))
	}
	t.end()
	if p.moreModels > 0 {
		p.printf("<p>And %s.</p>\n", words.Count(p.moreModels, "more model"))
	}
	p.printf("<p>%s</p>\n", p.costWords())
	if len(p.Lanes) > 0 {
		t := p.beginTable("lane", "items with a price", "without", "cost")
		for _, l := range p.Lanes {
			t.row(l.Lane, words.Number(l.Priced), words.Number(l.Unpriced), words.Cost(l.USD, l.Priced > 0, l.Unpriced))
		}
		t.end()
	}
}

// costWords returns the cost of all items in a sentence, with the parts that brought no result.
func (r *Report) costWords() string {
	text := "In all: " + r.Spent.Words
	if r.Spent.FailedUSD > 0 {
		text += ", of it " + words.Money(r.Spent.FailedUSD) + " for items that failed"
	}
	if r.Spent.EarlierUSD > 0 {
		text += ", " + words.Money(r.Spent.EarlierUSD) + " for earlier tries"
	}
	if r.Spent.Doubtful != "" {
		text += "; " + r.Spent.Doubtful
	}
	return text + "."
}

// writeRuns writes the table of the runs.
func (p *page) writeRuns() {
	if len(p.Runs) == 0 {
		return
	}
	p.printf("<h2>Runs</h2>\n")
	if more := p.OfRuns - runsIn(p.Runs); more > 0 {
		p.printf("<p>%s before these.</p>\n", words.Count(more, "run"))
	}
	t := p.beginTable("began", "took", "answered", "failed", "calls", "refused", text("how it ended"))
	for _, run := range p.Runs {
		t.row(p.at(run.Began), durationText(run.TookS), words.Number(run.Answered), words.Number(run.Failed), words.Number(run.Calls), words.Number(run.Throttled), text(run.How))
	}
	t.end()
}

// writeChanges writes the table of what headrace ctl has changed.
func (p *page) writeChanges() {
	if len(p.Changes) == 0 {
		return
	}
	p.printf("<h2>Changed while they went on</h2>\n")
	t := p.beginTable("at", text("what"))
	for k := range p.Changes {
		t.row(p.at(p.Changes[k].At), text(p.Changes[k].Say()))
	}
	t.end()
}

func runsIn(runs []Run) (n int) {
	for _, r := range runs {
		n += r.Runs
	}
	return n
}

// at shows a moment of an event for people.
func (r *Report) at(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return t.In(r.zone).Format("2006-01-02 15:04:05")
}

// writeSettings writes the table of the settings that are not at their defaults.
func (p *page) writeSettings() {
	if len(p.Settings) == 0 {
		return
	}
	p.printf("<h2>Settings</h2>\n")
	t := p.beginTable("setting", text("value"), text("from"))
	for _, s := range p.Settings {
		t.row("--"+s.Name, text(settingValue(s.Value)), text(s.From))
	}
	t.end()
	p.printf("<p class=\"sub\">All others have their defaults.</p>\n")
}

// settingValue shows the value of a setting. One that may be a prompt is not kept.
func settingValue(v *string) string {
	if v == nil {
		return "(not shown)"
	}
	return words.Clip(*v, maxName)
}

// writeProof writes the lines of the proof as they are.
func (p *page) writeProof() {
	if len(p.Proof) == 0 {
		return
	}
	p.printf("<h2>Proof</h2>\n<pre tabindex=\"0\">")
	for k, line := range slices.All(p.Proof) {
		if k > 0 {
			p.printf("\n")
		}
		p.printf("%s", strings.TrimSpace(line))
	}
	p.printf("</pre>\n")
}
