package run

import (
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
)

// The first items are named, and the rest are counted.
func TestNameFailed(t *testing.T) {
	t.Parallel()
	one := journal.Line{CustomID: "a", Error: &journal.Failure{Code: "panic"}}
	for _, c := range []struct {
		lines, all int
		want       string
	}{{1, 1, "a"}, {3, 3, "a, a, a"}, {3, 4, "a, a, a, …"}, {4, 4, "a, a, a, …"}} {
		s := &Settings{r: newRunner(&verdict.Facts{Flags: &settings.Flags{}})}
		lines := make([]journal.Line, c.lines)
		for i := range lines {
			lines[i] = one
		}
		s.NameFailed(lines, c.all)
		if got := s.r.verdict.Failed.String(); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.lines, c.all, got, c.want)
		}
	}
}

// Items that have not ended keep failing so far: none of them has failed.
func TestKeepFailing(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 item keeps failing", 2: "2 items keep failing"} {
		if got := keepFailing(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
