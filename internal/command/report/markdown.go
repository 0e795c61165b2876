package report

import (
	"fmt"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
)

// markdownMark begins each report in Markdown. Only a file that begins so is replaced.
const markdownMark = "<!-- headrace report -->\n"

// Markdown returns the report as text, for a pull request.
func (r *Report) Markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	table := func(heads ...string) {
		line("\n| %s |", strings.Join(heads, " | "))
		line("|%s", strings.Repeat("---|", len(heads)))
	}
	cells := func(texts ...string) {
		for k := range texts {
			texts[k] = printable.Markdown(texts[k])
		}
		line("| %s |", strings.Join(texts, " | "))
	}
	b.WriteString(markdownMark)
	line("## %s\n\n%s", printable.Markdown(r.Verdict), printable.Markdown(r.subtitle()))
	if text := r.stateWords(); text != "" {
		line("\n**%s**", printable.Markdown(text))
	}
	table("", "", "")
	for _, c := range r.cardList() {
		cells(c.name, c.value, c.note)
	}
	if len(r.Bounds) > 0 {
		line("\n### What held it back")
		table("", "time", "share", "")
		for _, of := range r.Bounds[:len(r.boundWords())] {
			cells(of.Name, durationText(of.Seconds), share(of.Share), strings.Repeat("█", int(20*of.Share+0.5)))
		}
	}
	r.Job.writeMarkdown(line, table, cells)
	if r.Failed > 0 {
		line("\n### What failed, and why")
		table("kind", "items", "share", "an example")
		for _, f := range r.Failures {
			example := ""
			if len(f.Examples) > 0 {
				example = f.Examples[0].words()
			}
			cells(f.Kind, words.Number(f.Items), r.share(f.Items), example)
		}
	}
	for _, text := range r.advice() {
		line("\n%s%s", printable.Markdown(text[0]), printable.Markdown(text[1]))
	}
	if len(r.Waits) > 0 {
		line("\n### Where an item's time went")
		table("an item", "p50", "p95", "sum of all")
		for _, w := range r.Waits {
			cells(w.What, durationText(w.P50S), durationText(w.P95S), durationText(w.SumS))
		}
	}
	line("\n### Cost\n\n%s", printable.Markdown(r.costWords()))
	table("model", "items", "tokens in", "cached", "tokens out", "cost")
	for _, m := range r.Models {
		cells(m.Model, words.Number(m.Items), words.Number(int(m.InputTokens)), words.Number(int(m.CachedTokens)), words.Number(int(m.OutputTokens)), words.Cost(m.USD, m.Priced > 0, m.Unpriced))
	}
	if r.moreModels > 0 {
		line("\nAnd %s.", words.Count(r.moreModels, "more model"))
	}
	if len(r.Runs) > 0 {
		line("\n### Runs")
		table("began", "took", "answered", "failed", "calls", "refused", "how it ended")
		for _, of := range r.Runs {
			cells(r.at(of.Began), durationText(of.TookS), words.Number(of.Answered), words.Number(of.Failed), words.Number(of.Calls), words.Number(of.Throttled), of.How)
		}
	}
	if len(r.Changes) > 0 {
		line("\n### Changed while they went on")
		table("at", "what")
		for k := range r.Changes {
			cells(r.at(r.Changes[k].At), r.Changes[k].Say())
		}
	}
	if len(r.Proof) > 0 {
		line("\n```\n%s\n```", strings.Join(trimmedLines(r.Proof), "\n"))
	}
	line("\nheadrace %s, made at %s", printable.Markdown(r.Headrace), printable.Markdown(r.At))
	return b.String()
}

func trimmedLines(lines []string) (list []string) {
	for _, l := range lines {
		list = append(list, printable.Line(strings.TrimSpace(l)))
	}
	return list
}
