package command

import (
	"fmt"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// introduce says what the user should know before the first call.
func (r *runner) introduce(src promptfile.Input, plan *promptfile.Plan, begun promptfile.Begun, lowered string) {
	if r.flags.law == lawNone {
		r.console.Notice(event.Unlimited, fmt.Sprintf("nothing is limited, as --law none says: up to %s in flight, however many are refused",
			words.Count(r.flags.concurrency, "call")))
	}
	for _, text := range r.backend.notice {
		r.console.Notice(text.code, text.text)
	}
	switch {
	case plan == nil && begun.Results > 0:
		r.console.Notice(event.Resumed, fmt.Sprintf("going on: %s in %s already; what is asked again is left out", words.Count(begun.Results, "result"), r.flags.output))
	case plan == nil:
	case plan.Items == 0 && plan.Bad.All == 0 && plan.Untranslatable.All == 0:
		r.console.Notice(event.EmptyInput, fmt.Sprintf("%s %s no items: there is nothing to do", src.Name, holdsOrHold(src)))
	case plan.Done+plan.Failed > 0:
		r.console.Notice(event.Resumed, fmt.Sprintf("going on: of %s, %d %s in %s already%s: %d to do",
			words.Count(plan.Items, "item"), plan.Done, isOrAre(plan.Done), r.flags.output, r.failedBefore(plan.Failed), plan.Left()))
	}
	if plan != nil && begun.Results > 0 && plan.Done == 0 && plan.Items > 0 {
		r.console.Notice(event.OtherOutput, fmt.Sprintf("no result in %s (of %d) is of an item of %s as it is asked now: is it another file's, or was it made with another --model, --system or --template? "+
			"%d to do; --fresh starts over and keeps the old file", r.flags.output, begun.Results, src.Name, plan.Left()))
	}
	if plan != nil && plan.Bad.All > 0 {
		r.console.Notice(event.BadLines, fmt.Sprintf("%s in %s skipped: see %s", words.Count(plan.Bad.All, "bad line"), src.Name, r.flags.errorsPath()))
	}
	if plan != nil && plan.Untranslatable.All > 0 {
		r.console.Notice(event.Untranslatable, fmt.Sprintf("%s in %s skipped: see %s", words.Count(plan.Untranslatable.All, "untranslatable line"), src.Name, r.flags.errorsPath()))
	}
	if lowered != "" {
		r.console.Notice(event.LoweredConcurrency, lowered)
	}
}

func holdsOrHold(src promptfile.Input) string {
	if src.Several() {
		return "hold"
	}
	return "holds"
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func (r *runner) failedBefore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed for good (%s; --retry-failed tries them again)", n, r.flags.errorsPath())
}
