package verdict

import (
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/limiter"
)

// The --max-cost that is advised covers the rest at its mean, and then what the last call
// reserves.
func TestEnough(t *testing.T) {
	s := &promptfile.Sums{CostUSD: 9.5, Priced: 95, OverBudget: &batch.BudgetError{Next: limiter.USD(3)}}
	s.Money = batch.Spending{Cap: limiter.USD(10), Spent: limiter.USD(9.5)}
	v := &Verdict{Facts: &Facts{}, Report: &progress.Report{Left: 5}}
	if got := v.enoughBudget(s); got != "14" { // 9.50, 1.1 times 0.50, and 3
		t.Errorf("a --max-cost of %s is advised, want 14", got)
	}
	s.Priced = 0
	if got := v.enoughBudget(s); got != "20" {
		t.Errorf("where no cost is known, %s is advised, want twice as much", got)
	}
}
