package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/words"
)

// gap separates the parts of a row.
const gap = "   "

// Lines returns everything about the progress of a run. Each line but the first has at most 79 cells.
func Lines(progress *Progress) []string {
	lines := []string{heading(progress)}
	name := "Held by"
	if progress.State == stopped {
		name = "Stopped"
	}
	for _, r := range []struct{ name, words string }{
		{name, progress.BoundText},
		{"", progress.BoundMore},
		{"Ends", progress.EndsText},
		{"Speed", SpeedWord(progress)},
		{"Calls", CallsRow(progress)},
		{"Spent", SpentRow(progress)},
		{"Failed", FailedRow(progress)},
	} {
		if r.words != "" {
			lines = append(lines, fmt.Sprintf("%-7s  %s", r.name, r.words))
		}
	}
	return lines
}

// heading returns the first line: the files of the run, its state, and how much is done.
func heading(progress *Progress) string {
	done := words.Number(progress.Done) + " done"
	if progress.Total != nil {
		done = words.Number(progress.Done) + " of " + words.Number(*progress.Total)
		if *progress.Total > 0 {
			done += fmt.Sprintf(" (%d %%)", 100*progress.Done / *progress.Total)
		}
	}
	return printableText(fmt.Sprintf("%s to %s: %s, %s in %s", progress.Input, progress.Output, progress.State, done, roughDuration(seconds(progress.ElapsedS))))
}

// SpeedWord says how many items end in a second: 9.8/s.
func SpeedWord(p *Progress) string { return perSecond(p.PerSecond) }

// CallsRow returns the row about calls: how many are in flight, their latencies, and how many items wait. For
// a run that ends it has only what is in flight.
func CallsRow(progress *Progress) string {
	inFlight, latencies, cooldowns := words.Number(progress.InFlight)+" in flight", "", ""
	if progress.State == draining || progress.State == stopped {
		if progress.OldestS != nil && progress.InFlight > 0 {
			inFlight += ", the oldest for " + shortDuration(seconds(*progress.OldestS))
		}
		return inFlight
	}
	if progress.Concurrency > 0 {
		inFlight += " of " + words.Number(progress.Concurrency)
	}
	if progress.P50MS != nil && progress.P95MS != nil {
		latencies = "p50 " + milliseconds(*progress.P50MS) + "  p95 " + milliseconds(*progress.P95MS)
	}
	if progress.Cooldowns != 0 {
		cooldowns = count(progress.Cooldowns, "cooldown")
	}
	return row(gap, inFlight, latencies, waiting(progress), cooldowns)
}

// The states that change the words.
const (
	draining = "draining"
	stopped  = "stopped"
)

func milliseconds(ms int64) string { return shortDuration(time.Duration(ms) * time.Millisecond) }

// waiting returns how many items wait, how many are parked, and how many are in backoff.
func waiting(p *Progress) string {
	text := words.Number(p.Waiting) + " wait"
	if p.Parked > 0 {
		text += ", " + words.Number(p.Parked) + " parked"
	}
	if p.Delayed > 0 {
		text += ", " + words.Number(p.Delayed) + " in backoff"
	}
	return text
}

// SpentRow returns the row about cost: so far, in all, and the tokens that were billed.
func SpentRow(progress *Progress) string {
	cost, tokens := costText(progress), tokensOf(progress, "tokens")
	switch {
	case progress.Simulated:
		return row(gap, tokens, "(simulated: nothing is paid)")
	case cost == "":
		return row(gap, tokens, "no known price: set one with --price")
	case progress.Spent.Unpriced > 0:
		return row(gap, "at least "+cost, "+ "+count(progress.Spent.Unpriced, "call")+" unpriced", tokens)
	}
	if cells(cost)+cells(gap)+cells(tokens) > rowCells {
		tokens = tokensOf(progress, "tok")
	}
	if progress.InAll == nil && progress.EndsWhy == early {
		return row(gap, cost, tokens, "in all: too early to say")
	}
	return row(gap, cost, tokens)
}

// early is the reason at the beginning of a run, when no end is known yet.
const early = "early"

// costText returns the cost so far, the expected cost in all, and the cap; "" if nothing has a price.
func costText(progress *Progress) string {
	if progress.Spent.USD == nil {
		return ""
	}
	text := words.Money(*progress.Spent.USD)
	if progress.InAll != nil && progress.State != draining && progress.State != stopped {
		text += ", about " + words.Money(progress.InAll.USD) + " in all"
		if progress.InAll.PlusMinus > 0 { // the first few items show no spread
			text += " (± " + words.Money(progress.InAll.PlusMinus) + ")"
		}
	}
	if b := progress.Spent.Budget; b != nil {
		text += ", cap " + words.Money(b.CapUSD)
	}
	return text
}

func tokensOf(p *Progress, noun string) string {
	return fmt.Sprintf("%s %s in, %s out", amount(float64(p.Spent.InputTokens)), noun, amount(float64(p.Spent.OutputTokens)))
}

// FailedRow returns the row about failures: items that failed for good, and calls that broke meanwhile.
func FailedRow(progress *Progress) string {
	text := "none"
	if progress.Failed > 0 {
		text = words.Number(int(progress.Failed)) + failedByText(progress)
	}
	if progress.State == draining || progress.State == stopped {
		return row(gap, text)
	}
	again := ""
	if progress.Again > 0 {
		again = words.Number(progress.Again) + " failed and were retried"
	}
	// answers counts those that are not whole, with what a content filter or a limit did to them.
	answers := func(n int, what string) string {
		if n == 0 || progress.Answered == 0 {
			return ""
		}
		return fmt.Sprintf("%s %s (%s)", count(n, "answer"), what, share(float64(n)/float64(progress.Answered)))
	}
	cutOff := words.OneOr(progress.Truncated, "was cut off at its max_tokens", "were cut off at their max_tokens")
	return row(gap, text, again, answers(progress.Filtered, "filtered"), answers(progress.Truncated, cutOff))
}

// mostKinds is the number of kinds of failure that a row names.
const mostKinds = 3

// failedByText returns the most frequent kinds of failure with their counts; "" if nothing has failed.
func failedByText(progress *Progress) string {
	var parts []string
	counted := 0
	for _, k := range byKind(progress.Failures) {
		if len(parts) == mostKinds {
			break
		}
		counted += k.count
		parts = append(parts, words.Number(k.count)+" "+k.words())
	}
	if len(parts) == 0 {
		return ""
	}
	if more := int(progress.Failed) - counted; more > 0 {
		parts = append(parts, words.Number(more)+" more")
	}
	return ": " + strings.Join(parts, ", ")
}

// kind is a kind of failure with its count; code is the code of all of them, "" if they
// differ.
type kind struct {
	name, code string
	count      int
}

// kindCells is the width of a kind, and of its code, in a row: they come from servers, or
// from a file.
const kindCells = 24

// words returns the kind of failure with its code, at most as wide as a row has room for.
func (k kind) words() string {
	text := clip(plainWord(k.name), kindCells)
	switch k.code {
	case "":
		return text
	case "context_length_exceeded", "string_above_max_length":
		return text + " (too long)"
	}
	return text + " (" + clip(plainWord(k.code), kindCells) + ")"
}

// byKind adds up failures of the same kind. Both lists begin with the most frequent.
func byKind(failures []Failure) (kinds []kind) {
	indexOf := map[string]int{}
	for _, failure := range failures {
		i, ok := indexOf[failure.Kind]
		if !ok {
			i, indexOf[failure.Kind] = len(kinds), len(kinds)
			kinds = append(kinds, kind{name: failure.Kind, code: failure.Code})
		}
		if kinds[i].code != failure.Code {
			kinds[i].code = ""
		}
		kinds[i].count += failure.Count
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(b.count, a.count) })
	return kinds
}
