package run

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/plan"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
)

// question asks a person before the first call of a run, because of its cost, or after a
// pilot.
type question struct {
	*verdict.Facts
	verdict *verdict.Verdict
	show    *display

	pilot  map[string]plan.Pilot // what a pilot has shown, by model; nil: there was none
	onLane map[string]plan.Pilot // likewise, by lane
	plan   *plan.Plan            // of the items that are left to do; nil: there is nothing to ask
}

// may reports whether there may be something to ask. Otherwise nothing is estimated.
func (q *question) may(src promptfile.Input, routes *route.Table) bool {
	if q.pilot == nil && (!q.Converse || src.Stream || !q.Flags.Confirms()) {
		return false
	}
	cfg := plan.ConfigOf(q.Flags, src.Name, q.Clock.Now())
	cfg.Routes, cfg.Pilot, cfg.OnLane = routes, q.pilot, q.onLane
	if q.pilot != nil { // with what earlier runs cost it counts against a cap
		if p, err := journal.ReadProgress(q.Flags.Output, q.Flags.ErrorsPath()); err == nil {
			cfg.Before = p.CostUSD + p.Doubtful.USD
		}
	}
	q.plan = plan.New(cfg)
	return true
}

// take adds what an item may cost.
func (q *question) take(r *prompts.Request) { q.plan.Take(*r) }

// ask waits for the answer of a person, if there is something to ask. Its error ends the run before
// it has called anybody or touched a file.
func (q *question) ask() error {
	switch {
	case q.plan == nil:
		return nil
	case q.pilot != nil:
		return q.afterPilot()
	}
	_, high, _ := q.plan.Span()
	if high <= q.Flags.ConfirmAbove {
		return nil
	}
	is := "is"
	if q.Flags.Fleet != nil {
		is = "may be"
	}
	text := fmt.Sprintf("%s to do for %s, which %s more than %s (--confirm-above). Continue?",
		words.Count(q.plan.Items(), "item"), q.span(), is, words.Money(q.Flags.ConfirmAbove))
	return q.agreed(text, exit.Interrupted, "nothing was called, as you said. Start again with:")
}

// afterPilot shows the plan of the rest, and asks whether to go on. If nobody can answer, the run
// ends there, unless a flag has answered.
func (q *question) afterPilot() error {
	q.plan.Foresee(q.plan.Items(), 0, 0)
	rest := fmt.Sprintf("the rest, by the pilot: %s for %s", words.Count(q.plan.Items(), "item"), q.cost())
	q.show.console.Notice(event.Planned, rest)
	q.show.console.Settle()
	isRead := q.Flags.Progress != settings.ProgressJSON && q.Flags.Progress != settings.ProgressNone
	if isRead {
		q.plan.Figures(q.Stderr)
	}
	if q.Flags.Yes {
		return nil
	}
	if !q.Converse || !isRead {
		return q.verdict.FailAgain(exit.Bound, "the pilot is over, and nobody can be asked whether to continue (--yes continues). Continue with:")
	}
	return q.agreed("Continue?", exit.Bound, "stopped after the pilot, as you said. Continue with:")
}

// cost says what the items may cost.
func (q *question) cost() string {
	usd, unpriced := q.plan.Cost()
	switch {
	case unpriced == q.plan.Items():
		return "an unknown price"
	case unpriced > 0:
		return "at least " + words.Money(usd)
	}
	return "about " + words.Money(usd)
}

// span says what the items may cost before any lane is chosen: on the cheapest of its lanes each, or on
// the dearest.
func (q *question) span() string {
	low, high, unpriced := q.plan.Span()
	switch lowest, highest := words.Money(low), words.Money(high); {
	case q.Flags.Fleet == nil:
		return q.cost()
	case unpriced > 0:
		return "at least " + lowest
	case lowest == highest:
		return "about " + lowest
	default:
		return lowest + " to " + highest
	}
}

// agreed asks and reads a line. Any answer but yes ends the run with the code and the text, and so
// does a signal or the deadline, with its own. The goroutine that reads is left behind until the
// process ends, since nothing ends a read from a terminal.
func (q *question) agreed(text string, code int, refused string) error {
	q.show.console.Settle()
	defer q.Halt.Ask()()
	fmt.Fprintf(q.Stderr, "headrace: %s [y/N] ", text)
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(q.Stdin).ReadString('\n') // a terminal that has gone says nothing: no
		line <- text
	}()
	select {
	case text := <-line:
		if !strings.HasSuffix(text, "\n") {
			fmt.Fprintln(q.Stderr) // the question's line ends
		}
		if word := strings.ToLower(strings.TrimSpace(text)); word == "y" || word == "yes" {
			return nil
		}
		return q.verdict.FailAgain(code, "%s", refused)
	case <-q.Halt.Drain:
		fmt.Fprintln(q.Stderr)
		return q.verdict.HaltedEarly()
	}
}
