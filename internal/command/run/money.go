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

// reserve returns what a call of a model with so many tokens costs; false: its price is not known.
// Over several lanes it is the cost on the dearest of those that may get the call.
func (r *runner) reserve(model string, input, output float64) (usd float64, known bool) {
	if r.routes != nil {
		return r.routes.Dearest(model, input, output, r.Clock.Now())
	}
	p, _, known := r.Flags.Known.Of(model)
	if !known {
		return 0, false
	}
	return p.Estimate(input, output, r.Clock.Now()).USD(), true
}

// soonSpent is the share of a budget after which a notice says how much is left: there is time to
// decide about more.
const soonSpent = 0.8

// sayBudget says once that most of --max-cost is spent.
func (d *display) sayBudget(m batch.Spending) {
	spent := m.Spent.Plus(m.Doubtful).USD()
	if m.Cap == 0 || d.warned || spent < soonSpent*m.Cap.USD() {
		return
	}
	d.warned = true
	d.console.Notice(event.Budget80, fmt.Sprintf("%s of %s spent (--max-cost): the run stops there", words.Money(spent), words.Money(m.Cap.USD())))
}

// stood returns how the money of the latest run to the output stood when its timeline was last
// written. A timeline of another output says nothing, nor does a run without a budget.
func (d *display) stood() (s promptfile.Stood) {
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

// sayUnseen says that calls may have been billed which no line is about.
func (d *display) sayUnseen(begun promptfile.Begun) {
	if begun.UnseenUSD == 0 {
		return
	}
	text := "an earlier run was cut off: calls then in flight may have been billed, at most " + words.Money(begun.UnseenUSD)
	if d.Flags.MaxCost > 0 {
		text += ", which counts against --max-cost"
	}
	d.console.Notice(event.Resumed, text)
}
