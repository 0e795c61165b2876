package progress

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

// The summary says what the run has cost, and how much of that is not known. Made-up answers
// cost nothing, unless they have a price.
func TestSummaryTellsOfCost(t *testing.T) {
	usd := func(x float64) *float64 { return &x }
	for want, s := range map[string]Report{
		"none":    {},
		"$0.0412": {Spent: event.Spent{USD: usd(0.0412)}},
		"$0.00":   {Spent: event.Spent{USD: usd(0)}},
		"at least $0.0412 (+ 3 calls of unknown price)": {Spent: event.Spent{USD: usd(0.0412), Unpriced: 3}},
		"unknown (1 call of unknown price)":             {Spent: event.Spent{Unpriced: 1}},
		"at least $1,204 (+ 1 call of unknown price)":   {Spent: event.Spent{USD: usd(1204), Unpriced: 1}, Books: &sim.Books{}},
	} {
		s.Succeeded = 1
		_, row, _ := strings.Cut(s.text(), "\ncost           ")
		if row, _, _ = strings.Cut(row, "\n"); row != want+", 0 tokens in, 0 out" {
			t.Errorf("%+v: %q, want %q", s, row, want)
		}
	}
	torn := Report{Summary: batch.Summary{Succeeded: 3}, Spent: event.Spent{USD: usd(1), Doubtful: event.Doubtful{Calls: 2, InputTokens: 1234, OutputTokens: 4}}}
	if text := torn.text(); !strings.Contains(text, "\ndoubtful       2 calls were cut off and may be billed: 1,234 tokens in, 4 out, or more\n") {
		t.Error(text)
	}
	if torn.Spent.Doubtful = (event.Doubtful{}); strings.Contains(torn.text(), "doubtful") {
		t.Error(torn.text())
	}
	made := Report{Summary: batch.Summary{Succeeded: 3}, Spent: event.Spent{Unpriced: 3}, Books: &sim.Books{}}
	if text := made.text(); !strings.Contains(text, "\ncost           none (simulated), ") {
		t.Error(text)
	}
}

// An account of several lanes has a row with their sums; one of a single lane has none, and neither have lanes without a name of
// an account.
func TestSummaryAddsUpAccounts(t *testing.T) {
	lane := func(name, account string, usd float64, priced, unpriced int) (l observe.Lane) {
		l.Name, l.Account, l.Answered = name, account, priced+2*unpriced+1
		l.Spent = observe.Spent{Usage: provider.Usage{InputTokens: 1000, OutputTokens: 10}, USD: usd, Priced: priced, Unpriced: unpriced}
		return l
	}
	sum := 7.5
	s := Report{Summary: batch.Summary{Succeeded: 9}, Spent: event.Spent{USD: &sum}, Lanes: []observe.Lane{
		lane("a", "ours", 1, 2, 0), lane("b", "theirs", 4, 2, 0), lane("c", "ours", 2.5, 2, 1), lane("d", "", 0, 1, 0), lane("e", "", 0, 1, 0), lane("f", "theirs", 0, 0, 0),
	}}
	want := "  account ours at least $3.50 (+ 1 call of unknown price), 8 answers, 2,000 tokens in, 20 out  (2 lanes)\n"
	if text := s.text(); strings.Count(text, "account") != 1 || !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
}
