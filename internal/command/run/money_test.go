package run

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/limiter"
)

// Most of a budget is announced once, doubts included, and a run without one says nothing.
func TestBudgetNotice(t *testing.T) {
	var out bytes.Buffer
	d := &display{console: progress.Open(progress.Plain(&out), time.Now)}
	for _, m := range []batch.Spending{
		{Spent: limiter.USD(5)},
		{Cap: limiter.USD(1), Spent: limiter.USD(0.79)},
		{Cap: limiter.USD(1), Spent: limiter.USD(0.7), Doubtful: limiter.USD(0.1)},
		{Cap: limiter.USD(1), Spent: limiter.USD(0.95)},
	} {
		d.warnOfBudget(m)
	}
	d.console.Close(nil)
	if got := out.String(); strings.Count(got, "--max-cost") != 1 || !strings.Contains(got, "$0.80 of $1.00 spent (--max-cost)") {
		t.Errorf("said %q", got)
	}
}
