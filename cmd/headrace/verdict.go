package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// failAgain is an ending from which the same command goes on.
func (r *runner) failAgain(code int, format string, args ...any) error {
	return r.ending(code, format, args...)
}

func (r *runner) ending(code int, format string, args ...any) *ending {
	command := r.args
	if r.startedOver {
		command = notAgain(command)
	}
	return &ending{code: code, text: r.redactEarly(fmt.Sprintf(format, args...)), resume: r.commandLine(command, r.flags.toStdout())}
}

// redactEarly is redact for when there may be no backend yet.
func (r *runner) redactEarly(s string) string {
	if r.backend == nil {
		return s
	}
	return r.redact(s)
}

// badLines is the end of a run whose input has faults: each is shown, up to a
// bound.
func (r *runner) badLines(s survey) error {
	end := r.ending(exitUsage, "%s in %s, nothing was called: correct or remove them, then run:", countOf(s.badAll, "bad line"), r.input)
	noModel := false
	for _, bad := range s.bad {
		end.list = append(end.list, bad)
		noModel = noModel || errors.Is(bad, prompts.ErrNoModel)
	}
	if noModel {
		end.text = "--model NAME gives lines a model that name none\n" + end.text
	}
	if more := s.badAll - len(s.bad); more > 0 {
		end.text = fmt.Sprintf("and %d more\n", more) + end.text
	}
	return end
}

// haltedEarly is the end of a run that had not begun.
func (r *runner) haltedEarly() error {
	code, why := r.whyHalted()
	return r.failAgain(code, "%s before the first call: to start again, run:", why)
}

// whyHalted is the exit code and the reason of a run that was told to stop.
func (r *runner) whyHalted() (code int, why string) {
	if r.halt.byDeadline() {
		return exitBound, fmt.Sprintf("the deadline of %v (--deadline) was reached", r.flags.deadline)
	}
	return exitInterrupted, "interrupted"
}

// verdict is how a run has ended, the gravest cause first.
func (r *runner) verdict(t *tally, runErr, sinkErr error) error {
	switch {
	case isClosedPipe(sinkErr):
		return &ending{code: exitOutput} // quietly, as other tools do
	case sinkErr != nil:
		return r.unwritable(sinkErr)
	case t.in.err != nil:
		return r.failAgain(exitUsage, "%s\n%s", plainText(t.in.err), r.goOn("the input ends there for now: correct it"))
	case t.stopped != nil:
		return r.stoppedBy(t)
	case r.halt.called() && (runErr != nil || t.in.left):
		code, why := r.whyHalted()
		return r.failAgain(code, "%s; %s: %s", why, t.saved(), r.goOn("the rest is left"))
	case errors.Is(runErr, machine.ErrTooManyLanes):
		return r.failAgain(exitBound, "the input names more models than may be at once (max-lanes in the file of --config); %s: %s",
			t.saved(), r.goOn("raise it or see to the input"))
	case errors.Is(runErr, batch.ErrConfig):
		return refuse("%s", plainText(runErr))
	case runErr != nil:
		return r.failAgain(exitItemsFailed, "%s; %s", plainText(runErr), r.goOn(t.saved()))
	}
	return r.itemsFailed(t)
}

// goOn leads to the line that resumes.
func (r *runner) goOn(reason string) string {
	var after []string
	if r.flags.toStdout() {
		after = append(after, "save what was written as "+resultsName)
	}
	if r.input == "-" {
		after = append(after, "give it the same input")
	}
	if len(after) == 0 {
		return reason + "; to go on, run:"
	}
	return reason + "; to go on, " + strings.Join(after, ", ") + " and run:"
}

// unwritable is the end of a run whose results could not all be kept, or whose
// files are not what was written.
func (r *runner) unwritable(err error) error {
	var unsaved *saver.Error
	advice := "make room or see to the disk"
	switch {
	case errors.Is(err, saver.ErrReplaced):
		advice = "what is not in the file will be asked again"
	case errors.As(err, &unsaved):
		advice = "make room or see to the disk: only what is not saved is asked again"
	}
	return r.failAgain(exitOutput, "%s\n%s", plainText(err), r.goOn(advice))
}

// stoppedBy is the end of a run that the provider would serve no more.
func (r *runner) stoppedBy(t *tally) error {
	code, advice := exitStopped, "see what the provider asks for"
	cause := t.stopped
	e := faultOf(cause)
	if e != nil {
		code, advice = e.Kind.ExitCode(), r.adviceFor(e)
		cause = e
	} else {
		cause = errors.Unwrap(cause)
	}
	what := plainText(t.stopped)
	if cause != nil {
		what = plainText(cause)
	}
	if e != nil && e.Kind == provider.Unauthorized && e.Status == 401 {
		what = fmt.Sprintf("%s refuses the key: 401 %s", r.flags.provider, e.Code) // its prose repeats a part of the key
	}
	return r.failAgain(code, "stopped: %s\n%s: %s", what, t.saved(), r.goOn(advice))
}

func (r *runner) adviceFor(e *provider.Error) string {
	switch e.Kind {
	case provider.QuotaExhausted:
		return "add credit or raise the quota (or wait until it is renewed)"
	case provider.Unauthorized:
		return "put a valid key into " + r.flags.keyEnv + ", or ask for access to the model"
	case provider.ModelNotFound:
		return "check the model's name, --model and --base-url"
	case provider.Misconfigured:
		return "check --base-url and its certificate"
	}
	return "see what the provider asks for"
}

// saved says what the run has come to so far.
func (t *tally) saved() string {
	text := fmt.Sprintf("%s saved", countOf(t.sum.Succeeded, "result"))
	if t.sum.Failed > 0 {
		text += fmt.Sprintf(", %s failed (%s)", countOf(t.sum.Failed, "item"), t.flags.errorsPath())
	}
	return text
}

// itemsFailed is the end of a run that has gone through its whole input.
func (r *runner) itemsFailed(t *tally) error {
	failed := t.sum.Failed + t.in.failed
	switch {
	case failed == 0 && t.in.skipped == 0:
		return nil
	case failed == 0:
		return &ending{code: exitItemsFailed, text: fmt.Sprintf("%s skipped: see %s", countOf(t.in.skipped, "bad line"), r.flags.errorsPath())}
	}
	text := fmt.Sprintf("%s failed for good: see %s", countOf(failed, "item"), r.flags.errorsPath())
	if t.in.failed > 0 && t.sum.Failed > 0 {
		text = fmt.Sprintf("%s failed for good, %d of them in an earlier run: see %s", countOf(failed, "item"), t.in.failed, r.flags.errorsPath())
	}
	if t.in.skipped > 0 {
		text += fmt.Sprintf("; %s skipped", countOf(t.in.skipped, "bad line"))
	}
	return &ending{code: exitItemsFailed, text: text}
}
