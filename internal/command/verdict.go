package command

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
)

// failAgain is an ending from which the same command continues.
func (r *runner) failAgain(code int, format string, args ...any) error {
	return r.ending(code, format, args...)
}

func (r *runner) ending(code int, format string, args ...any) *ending {
	command := r.args
	if r.startedOver {
		command = notAgain(command)
	}
	return &ending{code: code, text: r.redactEarly(sayf(format, args...)), resume: r.commandLine(command, r.flags.toStdout())}
}

// redactEarly is redact for when there may be no backend yet.
func (r *runner) redactEarly(s string) string {
	if r.backend == nil {
		return s
	}
	return r.redact(s)
}

// badLines is the end of a run whose input has faults: it shows each, up to a bound.
func (r *runner) badLines(s *promptfile.BadLines) error {
	end := r.ending(ExitUsage, "%s in %s, nothing was called: correct or remove %s, then run:", words.Count(s.All, "bad line"), r.input, itOrThem(s.All))
	if s.NoModel > 0 {
		end.resume += r.withModel()
	}
	if s.NoModel == s.All {
		end.text = r.redactEarly(sayf("%s: %s without a model, the first is line %d; nothing was called. Name a model for all of them:",
			r.input, words.Count(s.NoModel, "line"), s.First[0].Line))
		return end
	}
	for _, bad := range s.First {
		end.list = append(end.list, bad)
	}
	if hints := hintsFor(s.First); len(hints) > 0 {
		end.text = strings.Join(hints, "\n") + "\n" + end.text
	}
	if more := s.All - len(s.First); more > 0 {
		end.text = fmt.Sprintf("and %d more\n", more) + end.text
	}
	return end
}

// withModel returns what to add to a command that names no model: one of the provider's
// models, or a placeholder where a server may have any.
func (r *runner) withModel() string {
	model := "NAME"
	if examples := map[string]string{providerOpenAI: "gpt-4o-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}; r.flags.baseURL == "" && examples[r.flags.provider] != "" {
		model = examples[r.flags.provider]
	}
	return " --model " + model
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// haltedEarly is the end of a run that was stopped before it began.
func (r *runner) haltedEarly() error {
	code, why := r.whyHalted()
	return r.failAgain(code, "%s before the first call. Start again with:", why)
}

// whyHalted returns the exit code and the reason of a run that was stopped from outside.
func (r *runner) whyHalted() (code int, why string) {
	if r.halt.byDeadline() {
		return ExitBound, fmt.Sprintf("the deadline of %v (--deadline) was reached", r.flags.deadline)
	}
	return ExitInterrupted, "interrupted"
}

// verdict says how a run has ended, the gravest cause first.
func (r *runner) verdict(s *promptfile.Sums) error {
	switch {
	case isClosedPipe(s.FilesErr):
		return &ending{code: ExitPipe, text: "the reader of the results has gone: the run has ended"}
	case s.FilesErr != nil:
		return r.unwritable(s.FilesErr)
	case s.InputErr != nil:
		return r.inputEnded(s)
	case s.Stopped != nil:
		return r.stoppedBy(s)
	case s.Full != nil && (s.RunErr != nil || s.Left || s.Unordered) && !r.halt.interrupted():
		return r.failAgain(ExitOutput, "%s: there was room again for calls in flight\n%s: %s", plainText(s.Full), r.saved(s), r.goOn("check the disk"))
	case r.halt.called() && (s.RunErr != nil || s.Left || s.Unordered):
		code, why := r.whyHalted()
		return r.failAgain(code, "%s, %s. %s", why, r.saved(s), r.goOn(""))
	case errors.Is(s.RunErr, batch.ErrTooManyFailures):
		return r.failAgain(ExitBound, "stopped: %d of %s failed in this run (--max-failures %s): %s\n%s. %s",
			s.Failed, words.Count(s.Failed+s.Succeeded, "item"), r.flags.maxFailures.String(), r.failed.String(), r.saved(s), r.goOn(""))
	case errors.Is(s.RunErr, machine.ErrTooManyLanes):
		return r.failAgain(ExitBound, "the input has more models than allowed at once (max-lanes in the file of --config); %s: %s",
			r.saved(s), r.goOn("raise it or check the input"))
	case errors.Is(s.RunErr, batch.ErrConfig):
		return refuse("%s", plainText(s.RunErr))
	case s.RunErr != nil:
		return r.failAgain(ExitItemsFailed, "%s; %s. %s", plainText(s.RunErr), r.saved(s), r.goOn(""))
	case s.Changed != nil:
		return r.failAgain(ExitItemsFailed, "%s\n%s; %s", plainText(s.Changed), r.saved(s), r.goOn("ask the changed items"))
	}
	return r.itemsFailed(s)
}

// inputEnded is the end of a run that cannot read the rest of its input. After the first
// call it is no refusal any more: the exit code of a refusal promises that nothing was
// called.
func (r *runner) inputEnded(s *promptfile.Sums) error {
	code, sofar := ExitUsage, "nothing was called"
	if s.Counters.Calls > 0 || errors.Is(s.InputErr, promptfile.ErrChanged) {
		code, sofar = ExitItemsFailed, r.saved(s)
	}
	var bad *prompts.LineError
	if errors.As(s.InputErr, &bad) && bad.LacksModel() {
		end := r.ending(code, "%s; %s", sofar, r.goOn("name a model for lines that have none"))
		end.resume += r.withModel()
		return end
	}
	return r.failAgain(code, "%s\n%s; %s", plainText(s.InputErr), sofar, r.goOn("correct the input, which is not read beyond that"))
}

// goOn introduces the line that resumes; advice says what to do before, "" if nothing.
func (r *runner) goOn(advice string) string {
	lead := "Continue with:"
	switch saved, again := r.flags.toStdout(), r.input == "-"; {
	case saved && again:
		lead = "Save what was written as " + resultsName + ", give the same input again and continue with:"
	case saved:
		lead = "Save what was written as " + resultsName + " and continue with:"
	case again:
		lead = "Give the same input again and continue with:"
	}
	if advice == "" {
		return lead
	}
	return advice + ". " + lead
}

// unwritable is the end of a run that could not keep all its results, or whose files are not
// what it wrote.
func (r *runner) unwritable(err error) error {
	var unsaved *saver.Error
	advice := "make room or check the disk"
	switch {
	case errors.Is(err, saver.ErrReplaced):
		advice = "items that are not in the file will be asked again"
	case errors.As(err, &unsaved):
		advice = "make room or check the disk: only unsaved items are asked again"
	}
	return r.failAgain(ExitOutput, "%s\n%s", ownLines(plainText(err)), r.goOn(advice))
}

// saved sums up the results of the run so far.
func (r *runner) saved(s *promptfile.Sums) string {
	text := fmt.Sprintf("%s saved", words.Count(s.Succeeded, "result"))
	if s.Failed > 0 {
		text += fmt.Sprintf(", %s failed (%s)", words.Count(s.Failed, "item"), r.flags.errorsPath())
	}
	return text + r.unasked()
}

// unasked says how many items of the input are left; "" if none are, or that is not known.
// Some of them may have been asked in calls that were refused, broke or were abandoned.
func (r *runner) unasked() string {
	rep := r.report
	if rep == nil || rep.Left == 0 || rep.Of == 0 {
		return ""
	}
	what := "asked"
	if rep.Counters.HandedOver > 0 || r.halt.ctx.Err() != nil {
		what = "answered"
	}
	return fmt.Sprintf(", %s of %s not %s", words.Number(rep.Left), words.Number(rep.Of), what)
}

// itemsFailed is the end of a run that has gone through its whole input.
func (r *runner) itemsFailed(s *promptfile.Sums) error {
	failed, skipped := s.Failed+s.EarlierFailed, linesSkipped(s.Skipped, s.Untranslatable)
	switch {
	case failed == 0 && skipped == "":
		return nil
	case failed == 0:
		return &ending{code: ExitItemsFailed, text: fmt.Sprintf("%s skipped: see %s", skipped, r.flags.errorsPath())}
	}
	text := fmt.Sprintf("%s failed for good: see %s", words.Count(failed, "item"), r.flags.errorsPath())
	if s.EarlierFailed > 0 && s.Failed > 0 {
		text = fmt.Sprintf("%s failed for good, %d of them in an earlier run: see %s", words.Count(failed, "item"), s.EarlierFailed, r.flags.errorsPath())
	}
	if skipped != "" {
		text += fmt.Sprintf("; %s skipped", skipped)
	}
	text += string(r.whyFailed(s))
	if !r.flags.retryFailed && !r.flags.toStdout() {
		text += "\nretry them with the same command and --retry-failed"
	}
	return &ending{code: ExitItemsFailed, text: text}
}

// linesSkipped counts the skipped lines of both kinds; "" if there are none.
func linesSkipped(bad, untranslatable int) string {
	var kinds []string
	if bad > 0 {
		kinds = append(kinds, words.Count(bad, "bad line"))
	}
	if untranslatable > 0 {
		kinds = append(kinds, words.Count(untranslatable, "untranslatable line"))
	}
	return strings.Join(kinds, " and ")
}

// isClosedPipe tells a reader that has gone (| head) from a fault.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// faultOf returns the provider package's error in an error's chain; nil if there is none.
func faultOf(err error) *provider.Error {
	if err == nil {
		return nil // for every answered call: errors.As would allocate
	}
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
