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
		r.console.Notice(event.Unlimited, fmt.Sprintf("--law none: at most %s in flight, and no other limit, however many are refused",
			words.Count(r.flags.concurrency, "call")))
	}
	for _, text := range r.backend.notice {
		r.console.Notice(text.code, text.text)
	}
	switch {
	case plan == nil && begun.Results > 0:
		r.console.Notice(event.Resumed, fmt.Sprintf("resuming: %s in %s already; items that have one are skipped", words.Count(begun.Results, "result"), r.flags.output))
	case plan == nil:
	case plan.Items == 0 && plan.Bad.All == 0 && plan.Untranslatable.All == 0:
		r.console.Notice(event.EmptyInput, fmt.Sprintf("%s %s no items: nothing to do", src.Name, haveOrHas(src)))
	case plan.Done+plan.Failed > 0:
		r.console.Notice(event.Resumed, fmt.Sprintf("resuming: of %s, %d %s in %s already%s: %d to do",
			words.Count(plan.Items, "item"), plan.Done, isOrAre(plan.Done), r.flags.output, r.failedBefore(plan.Failed), plan.Left()))
	}
	if plan != nil && begun.Results > 0 && plan.Done == 0 && plan.Items > 0 {
		r.console.Notice(event.OtherOutput, fmt.Sprintf("none of the %s in %s match %s: wrong file, or other --model, --system or --template? %s would be asked again; --fresh starts over and keeps the old file",
			words.Count(begun.Results, "result"), r.flags.output, src.Name, words.Count(plan.Left(), "item")))
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

func haveOrHas(src promptfile.Input) string {
	if src.Several() {
		return "have"
	}
	return "has"
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
	return fmt.Sprintf(", %d failed for good (%s; --retry-failed retries them)", n, r.flags.errorsPath())
}
