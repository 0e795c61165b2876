package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/wire"
)

// A namedFile is one of a run's own files.
type namedFile struct{ what, name string }

// ownFiles lists the files that a run reads and writes, without its timeline and its log.
func ownFiles(f *verdict.Facts) (list []namedFile) {
	for _, name := range f.Inputs {
		if name != "-" {
			list = append(list, namedFile{"input", name})
		}
	}
	if !f.Flags.ToStdout() {
		list = append(list, namedFile{"output", f.Flags.Output}, namedFile{"state file", settings.StatePath(f.Flags.Output)})
	}
	return append(list, namedFile{"errors file", f.Flags.ErrorsPath()})
}

// outputFault returns the ending of a run whose files cannot be used. Either the user chose the wrong ones,
// or the disk refuses them.
func (r *runner) outputFault(err error) error {
	if errors.Is(err, journal.ErrLocked) && r.Flags.Errors == "" && r.Flags.ErrorsPath() == settings.StdoutErrors {
		return exit.Refuse("%s, or choose another errors file with --errors", exit.PlainText(err))
	}
	for _, choice := range []error{
		journal.ErrForeign, journal.ErrDamaged, journal.ErrOtherKind, journal.ErrChanged,
		journal.ErrLocked, journal.ErrForeignLock, journal.ErrDirectory, journal.ErrSameFile, journal.ErrNotEmpty,
		promptfile.ErrSimulated, promptfile.ErrReal, promptfile.ErrPacked, promptfile.ErrReserved,
	} {
		if errors.Is(err, choice) {
			return exit.Refuse("%s", exit.PlainText(err))
		}
	}
	if text := settings.NoFolder(r.Flags.Output, r.Flags.ErrorsPath()); text != "" && errors.Is(err, fs.ErrNotExist) {
		return exit.Refuse("%s", text)
	}
	advice := "check the disk"
	if errors.Is(err, fs.ErrPermission) {
		advice = "check the permissions of the file and its folder"
	}
	return r.verdict.FailAgain(exit.Output, "%s: %s, then run:", exit.PlainText(err), advice)
}

// jobConfig describes what the run does: its input, its files, and how it reads lines.
func (r *runner) jobConfig(in promptfile.Input) promptfile.Config {
	output := r.Flags.Output
	if r.Flags.ToStdout() {
		output = ""
	}
	chats, ofPrompts := r.Flags.AnswerBounds()
	job := promptfile.Config{
		Input: in, Output: output, Stdout: r.Stdout, Errors: r.Flags.ErrorsPath(),
		Reader: r.Flags.ReaderConfig(in.Name), SkipBad: r.Flags.SkipsBadLines(), SkipUntranslatable: r.Flags.SkipsUntranslatable(),
		MaxTokens: chats, MaxTokensOfPrompts: ofPrompts, Fields: r.Flags.Fields(),
		FilteredFails: r.Flags.Filtered == settings.FilteredFail, RetryFailed: r.Flags.RetryFailed, JustFailed: r.tried, Fresh: r.Flags.Fresh, InputOrder: r.Flags.Order == settings.OrderInput, Durability: r.Flags.Durability(),
		Concurrency: r.Flags.Concurrency, Drain: r.Halt.Drain,
		Lane: r.Account.Lane, Cost: settings.EstimateOf,
		Simulated: r.Account.Books != nil,
		Price:     r.show.priceOfModel, Bill: r.show.billItem, MaxCost: r.Flags.MaxCost, Reserve: r.costOfCall,
		Checked: true, // the client passes on only valid JSON as an answer
		Redact:  func(text string) string { return exit.WithoutPackages(r.Redact(text)) }, Watch: r.watchJob(in.Name),
	}
	r.routeJob(&job)
	r.checkJob(&job)
	return job
}

// watchJob returns the hooks by which a job reports its items, bad lines and faults.
func (r *runner) watchJob(input string) promptfile.Watch {
	return promptfile.Watch{
		Checked: func(items int) {
			r.show.console.Notice(event.Checking, fmt.Sprintf("checking %s before any call: %d items so far", input, items))
		},
		Began:   r.control.restoreAfterPilot,
		Ended:   r.itemEnded,
		Written: func(lines int) { r.show.unwritten.Add(-int64(lines)) },
		Skipped: func(bad *prompts.LineError) {
			r.show.skipped.Add(1)
			r.show.unwritten.Add(1)
			if verdict.IsNoJSONL(bad) {
				r.show.console.Notice(event.ReadOtherwise, verdict.FormatHint(bad.File))
			}
		},
		Renamed: r.renamedNotice(),
		Broke: func(err error) {
			r.show.console.Notice(event.InputBroke, exit.PlainText(err)+" (reading stops here; items before it are finished)")
			var bad *prompts.LineError
			if errors.As(err, &bad) {
				for _, hint := range verdict.HintsFor([]*prompts.LineError{bad}) {
					r.show.console.Notice(event.ReadOtherwise, hint)
				}
			}
		},
		Fault: r.Halt.Fault,
	}
}

// renamedNotice returns a hook for items whose id an earlier run has used. It shows a notice for the first:
// the others fare alike, and there may be millions.
func (r *runner) renamedNotice() func(req *prompts.Request, was string) {
	said := false
	return func(req *prompts.Request, was string) {
		if !said {
			r.show.console.Notice(event.Renamed, fmt.Sprintf("%s has a result for a different question with the id %q: the result of %s gets the id %s, and so on",
				r.Flags.Output, was, placeOf(req), req.ID))
		}
		said = true
	}
}

// placeOf names the line of a request, in words.
func placeOf(req *prompts.Request) string {
	if req.File == "" {
		return fmt.Sprintf("line %d", req.Line)
	}
	return fmt.Sprintf("line %d of %s", req.FileLine, req.File)
}

// noteOrder shows whether the output is now in the order of the input, where the user wants it so.
func (r *runner) noteOrder(s *promptfile.Sums) {
	switch {
	case s.Arranged:
		r.show.console.Notice(event.Ordered, r.Flags.Output+": its lines are now in the order of the input")
	case s.Unordered:
		r.show.console.Notice(event.Ordered, r.Flags.Output+": its lines may not be in the order of the input yet: a run that reaches the end sorts them")
	}
}

// itemEnded passes an item that has ended to those who count or report it. Its line is unwritten until
// Watch.Written reports it.
func (r *runner) itemEnded(res *promptfile.Result) {
	r.show.unwritten.Add(1)
	if len(res.Failures) > 0 {
		r.calls.failing.drop(res.Item.ID)
	}
	if r.pilot != nil {
		r.pilot.note(res)
	}
	if res.Err == nil {
		r.answered.note(r.answeredOperation(res))
		return
	}
	r.verdict.NoteFailed(res)
	r.log.logFailedItem(res)
}

// answeredOperation returns the operation that gives an item's answer its shape.
func (r *runner) answeredOperation(res *promptfile.Result) string {
	if res.Value.Translated {
		f := r.Flags
		if lane := r.Account.LaneNamed(res.Lane); lane != nil {
			f = lane.Spec.Flags
		}
		if res.Item.Endpoint == prompts.Embeddings {
			return provider.EmbedContent // of one or of several: all are read alike
		}
		return wire.Served(f.Dialect, f.Vendor.Serves...)[0]
	}
	return res.Item.Endpoint
}

// openFiles opens the files of the job, and shows what happened to earlier ones.
func (r *runner) openFiles(job *promptfile.Job) (promptfile.Begun, error) {
	begun, err := job.Begin()
	for _, file := range begun.Kept {
		r.show.console.Notice(event.StartingOver, fmt.Sprintf("starting over: the old %s is kept as %s", file.Name, file.As))
	}
	for _, file := range begun.Torn {
		r.show.console.Notice(event.TornLine, fmt.Sprintf("%s ended in an incomplete line of %d bytes: it is removed, and its item is asked again", file.Name, file.Bytes))
	}
	if r.verdict.StartedOver = begun.Fresh; errors.Is(err, promptfile.ErrHalted) {
		return begun, r.verdict.HaltedEarly()
	}
	if err != nil {
		return begun, r.outputFault(err)
	}
	return begun, nil
}

// isTable reports whether a file's name ends as that of a table that headrace export writes.
func isTable(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv", ".md":
		return true
	}
	return false
}

// noteBeforeCalls shows the notices that the user should read before the first call. plan is nil for a
// stream; lowered is about a lowered concurrency.
func (r *runner) noteBeforeCalls(src promptfile.Input, plan *promptfile.Plan, begun promptfile.Begun, lowered string) {
	if output := r.Flags.Output; isTable(output) && !r.Flags.ToStdout() && !settings.IsNoFile(output) {
		r.show.console.Notice(event.Other, fmt.Sprintf("%s holds JSON Lines, whatever its name says: headrace export %s -o NAME%s makes a table of it",
			output, settings.ShellQuote(output), strings.ToLower(filepath.Ext(output))))
	}
	if r.Flags.Law == settings.LawNone && r.Flags.Through == "" {
		r.show.console.Notice(event.Unlimited, fmt.Sprintf("--law none: at most %s in flight, and no other limit, however many are refused",
			words.Count(r.Flags.Concurrency, "call")))
	}
	for _, text := range r.Account.Notice {
		r.show.console.Notice(text.Code, text.Text)
	}
	r.Account.SayShared(r.show.console.Notice)
	r.show.warnOfUnseenCalls(begun)
	switch {
	case plan == nil && begun.Results > 0:
		r.show.console.Notice(event.Resumed, fmt.Sprintf("resuming: %s in %s already; items that have one are skipped", words.Count(begun.Results, "result"), r.Flags.Output))
	case plan == nil:
	case plan.Items == 0 && plan.Bad.All == 0 && plan.Untranslatable.All == 0:
		r.show.console.Notice(event.EmptyInput, fmt.Sprintf("%s %s no items: nothing to do", src.Name, haveOrHas(src)))
	case plan.Done+plan.Failed > 0:
		r.show.console.Notice(event.Resumed, fmt.Sprintf("resuming: of %s, %s %s in %s already%s: %s to do",
			words.Number(plan.Items)+words.OneOr(plan.Items, " item", " items"), words.Number(plan.Done), words.OneOr(plan.Done, "is", "are"), r.Flags.Output, r.failedBefore(plan.Failed), words.Number(plan.Left())))
	}
	if plan != nil && begun.Results > 0 && plan.Done == 0 && plan.Items > 0 {
		r.show.console.Notice(event.OtherOutput, fmt.Sprintf("none of the %s in %s match %s: wrong file, or other --model, --system, --template or --param? %s asked now, and the old results stay; --fresh starts over and keeps the old file",
			words.Count(begun.Results, "result"), r.Flags.Output, src.Name, words.Count(plan.Left(), "item")+words.OneOr(plan.Left(), " is", " are")))
	}
	if plan != nil && plan.Bad.All > 0 {
		r.show.console.Notice(event.BadLines, fmt.Sprintf("%s in %s skipped: see %s", words.Count(plan.Bad.All, "bad line"), src.Name, r.Flags.ErrorsPath()))
	}
	if plan != nil && plan.Untranslatable.All > 0 {
		r.show.console.Notice(event.Untranslatable, fmt.Sprintf("%s in %s skipped: see %s", words.Count(plan.Untranslatable.All, "untranslatable line"), src.Name, r.Flags.ErrorsPath()))
	}
	if lowered != "" {
		r.show.console.Notice(event.LoweredConcurrency, lowered)
	}
}

func haveOrHas(src promptfile.Input) string {
	if src.Several() {
		return "have"
	}
	return "has"
}

func (r *runner) failedBefore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed for good (%s; --retry-failed retries them)", n, r.Flags.ErrorsPath())
}
