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

// mark begins each page. Only a file that begins so is replaced.
const mark = "<!doctype html><!-- headrace report -->"

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

// put writes a format with its arguments. Every argument that is no markup is escaped: a format is part
// of the program, and everything else may be a text of others.
func (p *page) put(format markup, args ...any) {
	for k, arg := range args {
		switch of := arg.(type) {
		case markup, int:
		default:
			escaped := html.EscapeString(printable.Line(fmt.Sprint(of)))
			args[k] = strings.ReplaceAll(escaped, "://", "&#58;//") // mails make links of addresses
		}
	}
	fmt.Fprintf(p, string(format), args...)
}

// HTML returns the report as a page. If it would be longer than MaxBytes, its plots get fewer points.
func (r *Report) HTML() string {
	for most := mostPoints; ; most /= 2 {
		p := &page{Report: r}
		p.write(newPlots(r, max(1, most)))
		if p.Len() <= MaxBytes || most <= 1 {
			return p.String()
		}
	}
}

func (p *page) write(plots *plots) {
	p.begin(p.name())
	p.heading(p.stateWords())
	p.cards(p.cardList())
	p.heldBack(plots)
	p.sheets()
	p.plots(plots)
	p.failures()
	p.waits()
	p.costs()
	p.runTable()
	p.changes()
	p.settings()
	p.proof()
	p.end(p.Headrace, p.At)
}

// begin begins a page, and end ends it.
func (p *page) begin(of string) {
	p.put(mark+`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`+
		`<meta name="referrer" content="no-referrer"><title>headrace: %s</title><style>%s</style></head><body><main>`, of, markup(style))
}

func (p *page) end(version, at string) {
	p.put(`<p class="sub">headrace %s, made at %s. This page loads nothing and runs no script.</p></main></body></html>`+"\n", version, at)
}

// heading says what became of which run, and what is unusual about it.
func (p *page) heading(note string) {
	p.put("<h1>%s</h1>\n", p.Verdict)
	p.put(`<p class="sub">%s</p>`+"\n", p.subtitle())
	if note != "" {
		p.put(`<p class="note"><strong>%s</strong></p>`+"\n", note)
	}
}

// subtitle says which run it was.
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

// name names what the report is about.
func (r *Report) name() string {
	switch {
	case r.Job == nil:
		return r.Output
	case r.Output == "":
		return "job " + r.Job.Name
	}
	return r.Output + ", job " + r.Job.Name
}

// stateWords says what is unusual about the latest run; "" if nothing is.
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
type card struct{ name, value, more string }

func (r *Report) cardList() []card {
	took, more := "not known", "there is no timeline"
	if r.Timeline {
		if took, more = lasted(r.TookS), ""; r.Efficiency != nil {
			more = fmt.Sprintf("%.1f %% of the best possible under the limits", 100**r.Efficiency)
			if r.OfRuns > 1 {
				more += ", in the latest run"
			}
		}
	}
	first, proof := card{"took", took, more}, r.proofCard()
	if r.Job != nil {
		first, proof = r.Job.cards(r.Proved)
	}
	list := []card{first}
	cost := card{"cost", r.Spent.Words, ""}
	if r.Spent.USD != nil {
		if cost.value = words.Money(*r.Spent.USD); r.Spent.Unpriced > 0 {
			cost.value = "at least " + cost.value
			cost.more = words.Unpriced(r.Spent.Unpriced) + " not counted"
		}
	}
	if r.Spent.CapUSD != nil {
		cost.more = strings.TrimPrefix(cost.more+", --max-cost "+words.Money(*r.Spent.CapUSD), ", ")
	}
	list = append(list, cost)
	if r.Timeline {
		refused := card{"refused", words.Number(r.Throttled) + words.OneOr(r.Throttled, " call", " calls"), "of " + words.Number(r.Calls)}
		if r.Cooldowns > 0 {
			refused.more += ", in " + words.Count(r.Cooldowns, "wave")
		}
		list = append(list, refused)
	}
	return append(list, proof)
}

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

func (p *page) cards(list []card) {
	p.put(`<div class="cards">`)
	for _, c := range list {
		p.put(`<div class="card">%s<br><b>%s</b><br><span class="sub">%s</span></div>`, c.name, c.value, c.more)
	}
	p.put("</div>\n")
}

func (p *page) heldBack(plots *plots) {
	if len(p.Bounds) == 0 {
		return
	}
	p.put(`<h2>What held it back</h2><p class="keys">`)
	parts := p.bandKey()
	for k, text := range p.boundWords() {
		p.key(chart.Swatch(parts[p.Bounds[k].Bound]), text, plots.shares(p.Bounds[k].Bound))
	}
	p.put("</p>\n")
	if plots != nil {
		p.plot("What held it back, over time", plots.band(p.Report))
	}
}

// plot writes a drawing, which a narrow screen scrolls.
func (p *page) plot(title, svg string) {
	p.put(`<div class="plot" role="group" tabindex="0" aria-label="%s">%s</div>`+"\n", title, markup(svg))
}

// figures writes drawings with their legends.
func (p *page) figures(list []figure) {
	for _, f := range list {
		p.put(`<section><h3>%s</h3><p class="keys">`, f.title)
		for _, l := range f.legend {
			p.key(chart.Sign(l.look), l.text, l.values)
		}
		p.put("</p>\n")
		p.plot(f.title, f.svg)
		p.put("</section>\n")
	}
}

func (p *page) plots(plots *plots) {
	if plots == nil {
		return
	}
	p.figures(plots.figures(p.Report))
	p.put(`<details><summary>The plots as a table</summary>`)
	rows := p.rows()
	t := p.table("from", "items/s", "allowed/s", "in flight", "p50 s", "p95 s", "refused", "cost", text("held back by"))
	for _, r := range rows {
		t.row(r.from, r.speed, r.allowed, r.inFlight, r.p50, r.p95, words.Number(r.throttled), r.costs, text(r.heldBy))
	}
	t.end()
	p.put("</details>\n")
}

// text is a cell of words, which stand at its left; all others but the first are figures.
type text string

// table is a table under way.
type table struct{ p *page }

func (p *page) table(heads ...any) table {
	p.put(`<div class="wide" role="group" tabindex="0" aria-label="Table"><table><thead><tr>`)
	for _, h := range heads {
		if of, ok := h.(text); ok {
			p.put(`<th scope="col" class="t">%s</th>`, string(of))
		} else {
			p.put(`<th scope="col">%s</th>`, h)
		}
	}
	p.put("</tr></thead><tbody>\n")
	return table{p}
}

func (t table) row(cells ...any) {
	t.p.put("<tr>")
	for _, c := range cells {
		if of, ok := c.(text); ok {
			t.p.put(`<td class="t">%s</td>`, string(of))
		} else {
			t.p.put("<td>%s</td>", fmt.Sprint(c))
		}
	}
	t.p.put("</tr>\n")
}

func (t table) end() { t.p.put("</tbody></table></div>\n") }

func (p *page) failures() {
	p.put("<h2>What failed, and why</h2>\n")
	if p.Failed == 0 {
		p.put("<p>Nothing.</p>\n")
	} else {
		t := p.table("kind", "items", "share", text("examples"))
		for _, f := range p.Failures {
			p.put(`<tr><td>%s</td><td>%s</td><td>%s</td><td class="t">`, f.Kind, words.Number(f.Items), p.share(f.Items))
			for k, e := range f.Examples {
				if k > 0 {
					p.put("<br>")
				}
				p.put(`<code>%s</code>`, e.words())
			}
			p.put("</td></tr>\n")
		}
		t.end()
	}
	for _, line := range p.advice() {
		p.put("<p>%s<code>%s</code></p>\n", line[0], line[1])
	}
}

// share shows a part of all items that have ended.
func (r *Report) share(n int) string {
	if r.Done+r.Failed == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(r.Done+r.Failed))
}

// words shows an example in a line.
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

// advice says what to do about items that failed or were cut off: words, and a command.
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

func (p *page) waits() {
	if len(p.Waits) == 0 {
		return
	}
	p.put("<h2>Where an item's time went</h2>\n")
	t := p.table("an item", "p50", "p95", "sum of all")
	for _, w := range p.Waits {
		t.row(w.What, lasted(w.P50S), lasted(w.P95S), lasted(w.SumS))
	}
	t.end()
}

func (p *page) costs() {
	p.put("<h2>Cost</h2>\n")
	t := p.table("model", "items", "of these failed", "tokens in", "of these cached", "tokens out", "cost")
	for _, m := range p.Models {
		t.row(m.Model, words.Number(m.Items), words.Number(m.Failed), words.Number(int(m.InputTokens)), words.Number(int(m.CachedTokens)), words.Number(int(m.OutputTokens)), words.Cost(m.USD, m.Priced > 0, m.Unpriced))
	}
	t.end()
	if p.moreModels > 0 {
		p.put("<p>And %s.</p>\n", words.Count(p.moreModels, "more model"))
	}
	p.put("<p>%s</p>\n", p.costWords())
	if len(p.Lanes) > 0 {
		t := p.table("lane", "items with a price", "without", "cost")
		for _, l := range p.Lanes {
			t.row(l.Lane, words.Number(l.Priced), words.Number(l.Unpriced), words.Cost(l.USD, l.Priced > 0, l.Unpriced))
		}
		t.end()
	}
}

// costWords says what all items have cost, and which part of it was for nothing.
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

func (p *page) runTable() {
	if len(p.Runs) == 0 {
		return
	}
	p.put("<h2>Runs</h2>\n")
	if more := p.OfRuns - runsIn(p.Runs); more > 0 {
		p.put("<p>%s before these.</p>\n", words.Count(more, "run"))
	}
	t := p.table("began", "took", "answered", "failed", "calls", "refused", text("how it ended"))
	for _, r := range p.Runs {
		t.row(p.at(r.Began), lasted(r.TookS), words.Number(r.Answered), words.Number(r.Failed), words.Number(r.Calls), words.Number(r.Throttled), text(r.How))
	}
	t.end()
}

// changes lists what headrace ctl changed.
func (p *page) changes() {
	if len(p.Changes) == 0 {
		return
	}
	p.put("<h2>Changed while they went on</h2>\n")
	t := p.table("at", text("what"))
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

func (p *page) settings() {
	if len(p.Settings) == 0 {
		return
	}
	p.put("<h2>Settings</h2>\n")
	t := p.table("setting", text("value"), text("from"))
	for _, s := range p.Settings {
		t.row("--"+s.Name, text(settingValue(s.Value)), text(s.From))
	}
	t.end()
	p.put("<p class=\"sub\">All others have their defaults.</p>\n")
}

// settingValue shows the value of a setting. One that may be a prompt is not kept.
func settingValue(v *string) string {
	if v == nil {
		return "(not shown)"
	}
	return words.Clip(*v, maxName)
}

func (p *page) proof() {
	if len(p.Proof) == 0 {
		return
	}
	p.put("<h2>Proof</h2>\n<pre tabindex=\"0\">")
	for k, line := range slices.All(p.Proof) {
		if k > 0 {
			p.put("\n")
		}
		p.put("%s", strings.TrimSpace(line))
	}
	p.put("</pre>\n")
}
