package job

import (
	"strings"
	"testing"
	"time"
)

// A bound is reached by time, by a number of failures, or by their share once a hundred items have ended.
func TestBoundsAreReached(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		bounds        Bounds
		ended, failed int
		says          string
	}{
		"none":                {Bounds{}, 1000, 1000, ""},
		"before its end":      {Bounds{Deadline: at.Add(1)}, 0, 0, ""},
		"at its end":          {Bounds{Deadline: at}, 0, 0, "--deadline"},
		"some failures":       {Bounds{Failures: 3}, 10, 2, ""},
		"as many":             {Bounds{Failures: 3}, 10, 3, "3 items have failed, and --max-failures is 3"},
		"a share of few":      {Bounds{Share: 0.05}, 99, 99, ""},
		"a smaller share":     {Bounds{Share: 0.05}, 100, 4, ""},
		"the share of enough": {Bounds{Share: 0.05}, 100, 5, "5 of 100 items have failed, and --max-failures is 5%"},
	} {
		if got := c.bounds.Reached(at, c.ended, c.failed); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}
