package journal

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A status counts each item once, by how it ended last, and sums up what was spent.
func TestProgress(t *testing.T) {
	cost, out := 0.25, ""
	for n := 3; n <= 5; n++ {
		l := savedLine(n)
		l.Headrace.Attempts = 2
		l.Headrace.Usage = Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 1, CacheWriteTokens: 2, ReasoningTokens: 3}
		if n != 4 {
			l.Headrace.CostUSD = &cost
		}
		out += string(AppendLine(nil, &l))
	}
	overtaken := savedLine(3)
	overtaken.Error = &Failure{Code: "timeout"}
	overtaken.Headrace.CostUSD = &cost
	failed := string(AppendLine(nil, &overtaken)) + journalLine("x", "timeout") + journalLine("x", "invalid") + journalLine("y", "invalid")
	p := must.Get(ReadProgress(writeFile(t, out+`{"id"`), writeFile(t, failed)))(t)
	if p.Done != 3 || p.Failed != 2 || p.Attempts != 6 || p.Usage != (Usage{30, 15, 3, 6, 9}) || p.CostUSD != 0.5 || p.Unpriced != 1 {
		t.Errorf("%+v", p)
	}
	if p.FirstLine != 1 || p.LastLine != 5 || p.Torn != 5 || p.Changed.IsZero() || p.Models["m"] != 3 || p.Failures["invalid"] != 2 {
		t.Errorf("%+v", p)
	}
	if p.Priced != 2 || p.FailedUSD != 0 {
		t.Errorf("%+v", p)
	}
	none := filepath.Join(t.TempDir(), "none")
	if p, err := ReadProgress(none, none+"2"); err != nil || p.Done+p.Failed+p.FirstLine != 0 {
		t.Errorf("no files: %+v, %v", p, err)
	}
	if _, err := ReadProgress(writeFile(t, "notes\n"), none); !errors.Is(err, ErrForeign) {
		t.Errorf("a foreign file: %v", err)
	}
}

// A line that could not be asked has not failed once it has a result, by its id and its line. One that gives the id of
// another line has.
func TestProgressOfCorrectedLines(t *testing.T) {
	text := ""
	for _, bad := range []struct {
		code     string
		id, line int
	}{{CodeInvalidLine, 3, 3}, {CodeUntranslatable, 4, 4}, {CodeInvalidLine, 3, 7}, {CodeInvalidLine, 8, 8}, {"timeout", 5, 5}} {
		l := savedLine(bad.id)
		l.Headrace.Line, l.Headrace.Key, l.Error = bad.line, keyOf(bad.code+string(rune('a'+bad.line))), &Failure{Code: bad.code}
		text += string(AppendLine(nil, relined(l)))
	}
	out := ""
	for n := 3; n <= 5; n++ {
		l := savedLine(n)
		l.Headrace.Line = n
		out += string(AppendLine(nil, &l))
	}
	p, err := ReadProgress(writeFile(t, out), writeFile(t, text))
	if err != nil || p.Done != 3 || p.Failed != 3 || p.Failures[CodeInvalidLine] != 2 || p.Failures["timeout"] != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// relined is a line with the id that its key makes.
func relined(l Line) *Line {
	l.ID = resultID(l.Headrace.Key)
	return &l
}

// What items have cost that failed is spent too, and what is doubtful of both is summed up; one that used nothing has no cost, and one
// that used tokens and has no price is counted.
func TestProgressOfWhatFailed(t *testing.T) {
	failed, dear, free := "", 0.5, 0.0 // of 1, 2, 3 and 4 attempts
	for n, h := range []Headrace{
		{CostUSD: &dear, Usage: Usage{InputTokens: 5}}, {CostUSD: &free, Usage: Usage{InputTokens: 5}}, {Usage: Usage{OutputTokens: 1}}, {},
	} {
		l := savedLine(n + 1)
		l.Error, l.Headrace.CostUSD, l.Headrace.Usage = &Failure{Code: "invalid"}, h.CostUSD, h.Usage
		l.Headrace.Attempts = n + 1
		l.Headrace.Doubtful = Doubtful{Calls: 1, Usage: Usage{CachedTokens: 1}}
		failed += string(AppendLine(nil, &l))
	}
	l := savedLine(9)
	l.Headrace.CostUSD = &free
	l.Headrace.Doubtful = Doubtful{Calls: 2, USD: 0.25, Usage: Usage{InputTokens: 6, OutputTokens: 7}}
	p := must.Get(ReadProgress(writeFile(t, string(AppendLine(nil, &l))), writeFile(t, failed)))(t)
	if p.CostUSD != 0.5 || p.FailedUSD != 0.5 || p.Priced != 3 || p.Unpriced != 1 || p.Usage != (Usage{}) || p.Lost != (Usage{InputTokens: 10, OutputTokens: 1}) || p.Tried != 10 || p.Failed != 4 {
		t.Errorf("%+v", p)
	}
	if p.Doubtful != (Doubtful{Calls: 6, USD: 0.25, Usage: Usage{InputTokens: 6, OutputTokens: 7, CachedTokens: 4}}) {
		t.Errorf("doubtful: %+v", p.Doubtful)
	}
}

// ReadItems passes each item that it counts, with its line and its times, and none that a later line has replaced.
func TestReadItems(t *testing.T) {
	l := savedLine(3)
	l.Headrace.Model, l.Headrace.QueuedMS, l.Headrace.WaitedMS, l.Headrace.LatencyMS = "gpt", 1, 2, 3
	out := string(AppendLine(nil, &l))
	failures := journalLine("x", "timeout") + journalLine("x", "invalid")
	var items []Item
	p := must.Get(ReadItems(writeFile(t, out), writeFile(t, failures), func(i *Item) {
		i.Text = append([]byte{}, i.Text...)
		items = append(items, *i)
	}))(t)
	if len(items) != p.Done+p.Failed || len(items) != 2 || items[1].Code != "invalid" || string(items[0].Text) != out {
		t.Fatalf("%+v", items)
	}
	if i := items[0]; i.Model != "gpt" || i.QueuedMS != 1 || i.WaitedMS != 2 || i.LatencyMS != 3 || i.Failed {
		t.Errorf("%+v", i)
	}
}
