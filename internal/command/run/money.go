package run

import (
	"fmt"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
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
