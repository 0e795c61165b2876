package run

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// question is what a run asks a person before its first call, because of its cost.
type question struct {
	*verdict.Facts
	verdict *verdict.Verdict
	show    *display

	items    int // that are left to do
	usd      float64
	unpriced int // of the items
}

// may reports whether there is anybody to ask. Otherwise nothing is estimated.
func (q *question) may(src promptfile.Input) bool {
	return q.Converse && !src.Stream && q.Flags.Confirms()
}

// take adds what an item may cost: its answer is as long as it allows.
func (q *question) take(r *prompts.Request) {
	q.items++
	p, _, known := q.Flags.Known.Of(r.Model)
	if !known {
		q.unpriced++
		return
	}
	output := estimate.MaxOutput(r.Body)
	switch {
	case provider.OnlyReads(r.Endpoint):
		output = 0
	case output == 0:
		output = limiter.ExpectedOutput
	}
	q.usd += p.Estimate(estimate.Prompt(r.Body), output)
}

// ask waits for the answer of a person, if the run may cost much. Its error ends the run before
// anything was called or touched.
func (q *question) ask() error {
	if q.usd <= q.Flags.ConfirmAbove {
		return nil
	}
	about := "about"
	if q.unpriced > 0 {
		about = "at least"
	}
	q.show.console.Settle()
	fmt.Fprintf(q.Stderr, "headrace: %s to do for %s %s, which is more than %s (--confirm-above). Go on? [y/N] ",
		words.Count(q.items, "item"), about, words.Money(q.usd), words.Money(q.Flags.ConfirmAbove))
	yes, answered := q.answer()
	if !answered {
		return q.verdict.HaltedEarly()
	}
	if !yes {
		return q.verdict.FailAgain(exit.Interrupted, "nothing was called, as you said. Start again with:")
	}
	return nil
}

// answer reads a line; false: a signal or the deadline came first. The goroutine that reads is left
// behind until the process ends, since nothing ends a read from a terminal.
func (q *question) answer() (yes, answered bool) {
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
		word := strings.ToLower(strings.TrimSpace(text))
		return word == "y" || word == "yes", true
	case <-q.Halt.Drain:
		fmt.Fprintln(q.Stderr)
		return false, false
	}
}
