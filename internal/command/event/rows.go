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
		{name, p.HeldBy},
		{"", p.HeldMore},
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
	done := number(p.Done) + " done"
	if p.Total != nil {
		done = number(p.Done) + " of " + number(*p.Total)
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
	if p.State == draining || p.State == stopped {
		return inFlight(p)
	}
	flying := number(p.InFlight) + " in flight"
	if p.Concurrency > 0 {
		flying += " of " + number(p.Concurrency)
	}
	return row(gap, flying, latencies(p), waiting(p), cooldowns(p))
}

// The states that change the words.
const (
	draining = "draining"
	stopped  = "stopped"
)

// inFlight says what is still in flight.
func inFlight(p *Progress) string {
	if p.OldestS == nil || p.InFlight == 0 {
		return number(p.InFlight) + " in flight"
	}
	return number(p.InFlight) + " in flight, the oldest for " + lasting(seconds(*p.OldestS))
}

func latencies(p *Progress) string {
	if p.P50MS == nil || p.P95MS == nil {
		return ""
	}
	return "p50 " + milliseconds(*p.P50MS) + "  p95 " + milliseconds(*p.P95MS)
}

func milliseconds(ms int64) string { return lasting(time.Duration(ms) * time.Millisecond) }

func waiting(p *Progress) string {
	text := number(p.Waiting) + " wait"
	if p.Parked > 0 {
		text += ", " + number(p.Parked) + " parked"
	}
	if p.Delayed > 0 {
		text += ", " + number(p.Delayed) + " in backoff"
	}
	return text
}

func cooldowns(p *Progress) string {
	if p.Cooldowns == 0 {
		return ""
	}
	return count(p.Cooldowns, "cooldown")
}

// SpentRow says what the run has cost, what it will cost, and which tokens were billed.
func SpentRow(p *Progress) string {
	money, tokens := cost(p), tokens(p, "tokens")
	switch {
	case p.Simulated:
		return row(gap, tokens, "(simulated: nothing is paid)")
	case money == "":
		return row(gap, tokens, "no known price: set one with --price")
	case p.Spent.Unpriced > 0:
		return row(gap, money, count(p.Spent.Unpriced, "item")+" without a price", tokens)
	}
	if cells(money)+cells(gap)+cells(tokens) > rowCells {
		tokens = tokensShort(p)
	}
	if p.InAll == nil && p.EndsWhy == early {
		return row(gap, money, tokens, "in all: too early to say")
	}
	return row(gap, money, tokens)
}

// early is the reason at the beginning of a run, when no end is known yet.
const early = "early"

// cost is the money spent; "" if nothing has a price.
func cost(p *Progress) string {
	if p.Spent.USD == nil {
		return ""
	}
	text := words.Money(*p.Spent.USD)
	if p.InAll != nil && p.State != draining && p.State != stopped {
		text += ", about " + words.Money(p.InAll.USD) + " in all"
		if p.InAll.PlusMinus > 0 { // it is not known of the first few items
			text += " (± " + words.Money(p.InAll.PlusMinus) + ")"
		}
	}
	return text
}

func tokens(p *Progress, noun string) string {
	return fmt.Sprintf("%s %s in, %s out", amount(float64(p.Spent.InputTokens)), noun, amount(float64(p.Spent.OutputTokens)))
}

func tokensShort(p *Progress) string { return tokens(p, "tok") }

// FailedRow says how many items failed for good, and why, and how many calls broke
// meanwhile.
func FailedRow(p *Progress) string {
	text := "none"
	if p.Failed > 0 {
		text = number(int(p.Failed)) + failedBy(p)
	}
	if p.State == draining || p.State == stopped {
		return row(gap, text)
	}
	again := ""
	if p.Again > 0 {
		again = number(p.Again) + " failed and were retried"
	}
	return row(gap, text, again, filtered(p), truncated(p))
}

func truncated(p *Progress) string {
	if p.Truncated == 0 || p.Answered == 0 {
		return ""
	}
	of := " (" + share(float64(p.Truncated)/float64(p.Answered)) + ")"
	if p.Truncated == 1 {
		return "1 answer was cut off at its max_tokens" + of
	}
	return number(p.Truncated) + " answers were cut off at their max_tokens" + of
}

// filtered says how many answers a content filter has cut short or emptied.
func filtered(p *Progress) string {
	if p.Filtered == 0 || p.Answered == 0 {
		return ""
	}
	return count(p.Filtered, "answer") + " filtered (" + share(float64(p.Filtered)/float64(p.Answered)) + ")"
}

// mostKinds is the number of kinds of failure that a row names.
const mostKinds = 3

// failedBy counts the failures by kind, the most frequent first.
func failedBy(p *Progress) string {
	var parts []string
	said := 0
	for _, k := range byKind(p.Failures) {
		if len(parts) == mostKinds {
			break
		}
		said += k.count
		parts = append(parts, number(k.count)+" "+k.words())
	}
	if len(parts) == 0 {
		return ""
	}
	if more := int(p.Failed) - said; more > 0 {
		parts = append(parts, number(more)+" more")
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
	if k.code != "" {
		text += " (" + clip(codeWord(k.code), kindCells) + ")"
	}
	return text
}

// codeWord says what the usual codes mean.
func codeWord(code string) string {
	switch code {
	case "context_length_exceeded", "string_above_max_length":
		return "too long"
	}
	return plainWord(code)
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
