package run

import (
	"fmt"
	"path/filepath"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/words"
)

// costOfCall returns the cost of a call with so many tokens; false if the price is unknown. Over several
// lanes it is the cost on the dearest that may get the call.
func (r *runner) costOfCall(model string, input, output float64) (usd float64, known bool) {
	if r.routes != nil {
		return r.routes.Dearest(model, input, output, r.Clock.Now())
	}
	p, _, known := r.Flags.Known.Of(model)
	if !known {
		return 0, false
	}
	return p.Estimate(input, output, r.Clock.Now()).USD(), true
}

// budgetWarningShare is the share of a budget after which a notice says how much is left: there is time to
// decide about more.
const budgetWarningShare = 0.8

// warnOfBudget shows a notice, once, when most of --max-cost is spent.
func (d *display) warnOfBudget(m batch.Spending) {
	spent := m.Spent.Plus(m.Doubtful).USD()
	if m.Cap == 0 || d.budgetReported || spent < budgetWarningShare*m.Cap.USD() {
		return
	}
	d.budgetReported = true
	d.console.Notice(event.Budget80, fmt.Sprintf("%s of %s spent (--max-cost): the run stops there", words.Money(spent), words.Money(m.Cap.USD())))
}

// moneyOfLatestRun returns the budget of the latest run to this output, as its timeline last recorded it. It
// is zero for another output, and for a run without a budget.
func (d *display) moneyOfLatestRun() (s promptfile.Stood) {
	if d.timelineAt == "" {
		return s
	}
	v, err := (&timeline.Reader{Path: d.timelineAt}).Read()
	if err != nil || v.Progress == nil || v.Progress.Spent.Budget == nil || filepath.Base(v.Progress.Output) != filepath.Base(d.Flags.Output) {
		return s
	}
	b := v.Progress.Spent.Budget
	return promptfile.Stood{InFlight: v.Progress.InFlight, Reserved: b.ReservedUSD, Spent: b.SpentUSD + b.DoubtfulUSD}
}

// warnOfUnseenCalls shows a notice if an earlier run was cut off while calls were in flight. They may have
// been billed, and no line is about them.
func (d *display) warnOfUnseenCalls(begun promptfile.Begun) {
	if begun.UnseenUSD == 0 {
		return
	}
	text := "an earlier run was cut off: calls then in flight may have been billed, at most " + words.Money(begun.UnseenUSD)
	if d.Flags.MaxCost > 0 {
		text += ", which counts against --max-cost"
	}
	d.console.Notice(event.Resumed, text)
}
