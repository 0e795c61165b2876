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

// prepare reports whether there may be something to ask, and if so starts the estimate of the cost. Otherwise
// nothing is estimated.
func (q *question) prepare(src promptfile.Input, routes *route.Table) bool {
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

// addItem adds what an item may cost.
func (q *question) addItem(r *prompts.Request) { q.plan.Take(*r) }

// ask asks a person about the cost, if there is something to ask, and waits for the answer. Its error ends
// the run before any call and before any file is touched.
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
	verb := "is"
	if q.Flags.Fleet != nil {
		verb = "may be"
	}
	text := fmt.Sprintf("%s to do for %s, which %s more than %s (--confirm-above). Continue?",
		words.Count(q.plan.Items(), "item"), q.costRangeText(), verb, words.Money(q.Flags.ConfirmAbove))
	return q.confirm(text, exit.Interrupted, "nothing was called, as you said. Start again with:")
}

// afterPilot shows the plan of the rest, and asks whether to continue. If nobody can answer, the run ends
// there, unless --yes has answered in advance.
func (q *question) afterPilot() error {
	q.plan.Foresee(q.plan.Items(), 0, 0)
	rest := fmt.Sprintf("the rest, by the pilot: %s for %s", words.Count(q.plan.Items(), "item"), q.costText())
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
	return q.confirm("Continue?", exit.Bound, "stopped after the pilot, as you said. Continue with:")
}

// costText returns what the items may cost, in words.
func (q *question) costText() string {
	usd, unpriced := q.plan.Cost()
	switch {
	case unpriced == q.plan.Items():
		return "an unknown price"
	case unpriced > 0:
		return "at least " + words.Money(usd)
	}
	return "about " + words.Money(usd)
}

// costRangeText returns what the items may cost before lanes are chosen. It ranges from the cheapest lane of
// each item to the dearest.
func (q *question) costRangeText() string {
	low, high, unpriced := q.plan.Span()
	switch lowest, highest := words.Money(low), words.Money(high); {
	case q.Flags.Fleet == nil:
		return q.costText()
	case unpriced > 0:
		return "at least " + lowest
	case lowest == highest:
		return "about " + lowest
	default:
		return lowest + " to " + highest
	}
}

// confirm asks a question and reads a line. Any answer but yes ends the run with that code and refusal, and a
// signal or the deadline ends it with its own. The goroutine that reads stays behind, since nothing ends a
// read from a terminal.
func (q *question) confirm(prompt string, code int, refusal string) error {
	q.show.console.Settle()
	defer q.Halt.Ask()()
	fmt.Fprintf(q.Stderr, "headrace: %s [y/N] ", prompt)
	line := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(q.Stdin).ReadString('\n') // a terminal that has gone says nothing: no
		line <- answer
	}()
	select {
	case answer := <-line:
		if !strings.HasSuffix(answer, "\n") {
			fmt.Fprintln(q.Stderr) // the question's line ends
		}
		if word := strings.ToLower(strings.TrimSpace(answer)); word == "y" || word == "yes" {
			return nil
		}
		return q.verdict.FailAgain(code, "%s", refusal)
	case <-q.Halt.Drain:
		fmt.Fprintln(q.Stderr)
		return q.verdict.HaltedEarly()
	}
}
