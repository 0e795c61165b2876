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

// Lines returns everything about how a run stands, in at most 79 cells each except the
// first.
func Lines(p *Progress) []string {
	lines := []string{heading(p)}
	name := "Held by"
	if p.State == stopped {
		name = "Stopped"
	}
	for _, r := range []struct{ name, words string }{
		{name, p.BoundText},
		{"", p.BoundMore},
		{"Ends", p.EndsText},
		{"Speed", SpeedWord(p)},
		{"Calls", CallsRow(p)},
		{"Spent", SpentRow(p)},
		{"Failed", FailedRow(p)},
	} {
		if r.words != "" {
			lines = append(lines, fmt.Sprintf("%-7s  %s", r.name, r.words))
		}
	}
	return lines
}

// heading names the run, and says how much of it is done.
func heading(p *Progress) string {
	done := words.Number(p.Done) + " done"
	if p.Total != nil {
		done = words.Number(p.Done) + " of " + words.Number(*p.Total)
		if *p.Total > 0 {
			done += fmt.Sprintf(" (%d %%)", 100*p.Done / *p.Total)
		}
	}
	return harmless(fmt.Sprintf("%s to %s: %s, %s in %s", p.Input, p.Output, p.State, done, span(seconds(p.ElapsedS))))
}

// SpeedWord says how many items end in a second: 9.8/s.
func SpeedWord(p *Progress) string { return perSecond(p.PerSecond) }

// CallsRow says how many calls are in flight, how long they take, and how many items wait.
// For a run that ends it says only what is still in flight.
func CallsRow(p *Progress) string {
	flying, latencies, cooldowns := words.Number(p.InFlight)+" in flight", "", ""
	if p.State == draining || p.State == stopped {
		if p.OldestS != nil && p.InFlight > 0 {
			flying += ", the oldest for " + lasting(seconds(*p.OldestS))
		}
		return flying
	}
	if p.Concurrency > 0 {
		flying += " of " + words.Number(p.Concurrency)
	}
	if p.P50MS != nil && p.P95MS != nil {
		latencies = "p50 " + milliseconds(*p.P50MS) + "  p95 " + milliseconds(*p.P95MS)
	}
	if p.Cooldowns != 0 {
		cooldowns = count(p.Cooldowns, "cooldown")
	}
	return row(gap, flying, latencies, waiting(p), cooldowns)
}

// The states that change the words.
const (
	draining = "draining"
	stopped  = "stopped"
)

func milliseconds(ms int64) string { return lasting(time.Duration(ms) * time.Millisecond) }

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

// SpentRow says what the run has cost, what it will cost, and which tokens were billed.
func SpentRow(p *Progress) string {
	money, tokens := moneyOf(p), tokensOf(p, "tokens")
	switch {
	case p.Simulated:
		return row(gap, tokens, "(simulated: nothing is paid)")
	case money == "":
		return row(gap, tokens, "no known price: set one with --price")
	case p.Spent.Unpriced > 0:
		return row(gap, "at least "+money, "+ "+count(p.Spent.Unpriced, "call")+" unpriced", tokens)
	}
	if cells(money)+cells(gap)+cells(tokens) > rowCells {
		tokens = tokensOf(p, "tok")
	}
	if p.InAll == nil && p.EndsWhy == early {
		return row(gap, money, tokens, "in all: too early to say")
	}
	return row(gap, money, tokens)
}

// early is the reason at the beginning of a run, when no end is known yet.
const early = "early"

// moneyOf words the cost so far, in all, and at most; "" if nothing has a price.
func moneyOf(p *Progress) string {
	if p.Spent.USD == nil {
		return ""
	}
	text := words.Money(*p.Spent.USD)
	if p.InAll != nil && p.State != draining && p.State != stopped {
		text += ", about " + words.Money(p.InAll.USD) + " in all"
		if p.InAll.PlusMinus > 0 { // the first few items show no spread
			text += " (± " + words.Money(p.InAll.PlusMinus) + ")"
		}
	}
	if b := p.Spent.Budget; b != nil {
		text += ", cap " + words.Money(b.CapUSD)
	}
	return text
}

func tokensOf(p *Progress, noun string) string {
	return fmt.Sprintf("%s %s in, %s out", amount(float64(p.Spent.InputTokens)), noun, amount(float64(p.Spent.OutputTokens)))
}

// FailedRow says how many items failed for good, and why, and how many calls broke
// meanwhile.
func FailedRow(p *Progress) string {
	text := "none"
	if p.Failed > 0 {
		text = words.Number(int(p.Failed)) + failedBy(p)
	}
	if p.State == draining || p.State == stopped {
		return row(gap, text)
	}
	again := ""
	if p.Again > 0 {
		again = words.Number(p.Again) + " failed and were retried"
	}
	// answers counts those that are not whole, with what a content filter or a limit did to them.
	answers := func(n int, what string) string {
		if n == 0 || p.Answered == 0 {
			return ""
		}
		return fmt.Sprintf("%s %s (%s)", count(n, "answer"), what, share(float64(n)/float64(p.Answered)))
	}
	cutOff := words.OneOr(p.Truncated, "was cut off at its max_tokens", "were cut off at their max_tokens")
	return row(gap, text, again, answers(p.Filtered, "filtered"), answers(p.Truncated, cutOff))
}

// mostKinds is the number of kinds of failure that a row names.
const mostKinds = 3

// failedBy counts the failures by kind, the most frequent first.
func failedBy(p *Progress) string {
	var parts []string
	named := 0
	for _, k := range byKind(p.Failures) {
		if len(parts) == mostKinds {
			break
		}
		named += k.count
		parts = append(parts, words.Number(k.count)+" "+k.words())
	}
	if len(parts) == 0 {
		return ""
	}
	if more := int(p.Failed) - named; more > 0 {
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

// byKind adds up failures of the same kind. Both lists have the most frequent first.
func byKind(failures []Failure) (kinds []kind) {
	at := map[string]int{}
	for _, f := range failures {
		i, ok := at[f.Kind]
		if !ok {
			i, at[f.Kind] = len(kinds), len(kinds)
			kinds = append(kinds, kind{name: f.Kind, code: f.Code})
		}
		if kinds[i].code != f.Code {
			kinds[i].code = ""
		}
		kinds[i].count += f.Count
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(b.count, a.count) })
	return kinds
}
