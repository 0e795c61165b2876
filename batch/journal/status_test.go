package journal

import (
	"errors"
	"path/filepath"
	"testing"
)

// A status counts each item once, by how it ended last, and sums up what was spent.
func TestProgress(t *testing.T) {
	cost, out := 0.25, ""
	for n := 3; n <= 5; n++ {
		l := savedLine(n)
		l.Headrace.Attempts = 2
		l.Headrace.Usage = Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 1}
		if n != 4 {
			l.Headrace.CostUSD = &cost
		}
		out += string(AppendLine(nil, &l))
	}
	overtaken := savedLine(3)
	overtaken.Error = &Failure{Code: "timeout"}
	failed := string(AppendLine(nil, &overtaken)) + journalLine("x", "timeout") + journalLine("x", "invalid") + journalLine("y", "invalid")
	p, err := ReadProgress(writeFile(t, out+`{"id"`), writeFile(t, failed))
	if err != nil {
		t.Fatal(err)
	}
	if p.Done != 3 || p.Failed != 2 || p.Attempts != 6 || p.Usage != (Usage{30, 15, 3}) || p.CostUSD != 0.5 || p.Unpriced != 1 {
		t.Errorf("%+v", p)
	}
	if p.FirstLine != 1 || p.LastLine != 5 || p.Torn != 5 || p.Changed.IsZero() || p.Models["m"] != 3 || p.Failures["invalid"] != 1 {
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
