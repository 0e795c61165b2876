package verdict

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
)

// Facts hold the known state of a run, for all that act in it.
type Facts struct {
	*world.World
	Flags   *settings.Flags
	Inputs  []string         // the names of its files
	Input   string           // the name of the whole input
	Account *account.Account // nil until the run is connected
	Halt    *world.Halt
	Began   time.Time
}

// Seed returns the seed of --seed, or else one that differs each time.
func (f *Facts) Seed() uint64 {
	if f.Flags.Seeded {
		return f.Flags.Seed
	}
	return f.Chance
}

// A Verdict says how a run has ended, in words and an exit code, and how to continue it.
type Verdict struct {
	*Facts
	Failed      failedItems
	Latest      atomic.Pointer[provider.Error] // why the workers' latest call failed; nil: none did
	StartedOver bool                           // the old files were put aside: a command that goes on does not start over again
	Report      *progress.Report               // what the console shows at the end; nil: nothing
}

// FailAgain is an ending from which the same command continues.
func (v *Verdict) FailAgain(code int, format string, args ...any) error {
	return v.ending(v.Args, code, format, args...)
}

// FailRaised is an ending from which the same command continues with another --max-cost, in USD.
func (v *Verdict) FailRaised(maxCost string, code int, format string, args ...any) error {
	return v.ending(settings.WithMaxCost(v.Args, maxCost), code, format, args...)
}

// ending returns an ending with the command that continues the run, without the key.
func (v *Verdict) ending(command []string, code int, format string, args ...any) *exit.Ending {
	if v.StartedOver {
		command = settings.NotAgain(command)
	}
	end := v.Flags.ContinuesBy(v.Name, command, code, format, args...)
	end.Text = v.redactEarly(end.Text)
	return end
}

// redactEarly is Redact for texts that may come before there is an account.
func (v *Verdict) redactEarly(s string) string {
	if v.Account == nil {
		return s
	}
	return v.Redact(s)
}

// BadLines is the end of a run whose input has bad lines. It lists the first of them, and adds hints.
func (v *Verdict) BadLines(s *promptfile.BadLines) error {
	end := v.ending(v.Args, exit.Usage, "%s in %s, nothing was called: correct or remove %s, then run:", words.Count(s.All, "bad line"), v.Input, words.OneOr(s.All, "it", "them"))
	if s.NoModel > 0 {
		end.Resume += v.withModel()
	}
	if s.NoModel == s.All {
		end.Text = v.redactEarly(exit.Sayf("%s: %s without a model, the first is line %d; nothing was called. Name a model for all of them:",
			v.Input, words.Count(s.NoModel, "line"), s.First[0].Line))
		return end
	}
	for _, bad := range s.First {
		end.List = append(end.List, bad)
	}
	if hints := HintsFor(s.First); len(hints) > 0 {
		end.Text = strings.Join(hints, "\n") + "\n" + end.Text
	}
	if more := s.All - len(s.First); more > 0 {
		end.Text = fmt.Sprintf("and %d more\n", more) + end.Text
	}
	return end
}

// FaultyInput is the end of a run whose input has faults that were found elsewhere. The complaints about its lines have the
// form that editors jump to.
func (v *Verdict) FaultyInput(text string, complaints []string) error {
	end := v.ending(v.Args, exit.Usage, "%s: correct or remove what is wrong, then run:", text)
	for _, one := range complaints {
		end.List = append(end.List, errors.New(one))
	}
	return end
}

// withModel returns the flag to add to a command that names no model. It names a model of the provider, or a
// placeholder where a server may have any.
func (v *Verdict) withModel() string {
	model := "NAME"
	if examples := map[string]string{settings.ProviderOpenAI: "gpt-4o-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}; v.Flags.BaseURL == "" && examples[v.Flags.Provider] != "" {
		model = examples[v.Flags.Provider]
	}
	return " --model " + model
}

// HaltedEarly is the end of a run that was stopped before it began.
func (v *Verdict) HaltedEarly() error {
	code, why := v.whyHalted()
	return v.FailAgain(code, "%s before the first call. Start again with:", why)
}

// whyHalted returns the exit code and the reason of a run that was stopped from outside.
func (v *Verdict) whyHalted() (code int, why string) {
	if v.Halt.ByDeadline() {
		return exit.Bound, fmt.Sprintf("the deadline of %v (--deadline) was reached", v.Flags.Deadline)
	}
	return exit.Interrupted, "interrupted"
}

// Of returns the ending of a run, by its gravest cause; nil if every item succeeded.
func (v *Verdict) Of(s *promptfile.Sums) error {
	switch {
	case exit.IsClosedPipe(s.FilesErr):
		return &exit.Ending{Code: exit.Pipe, Text: "the reader of the results has gone: the run has ended"}
	case s.FilesErr != nil:
		return v.unwritable(s.FilesErr)
	case s.InputErr != nil:
		return v.inputEnded(s)
	case s.Stopped != nil:
		return v.stoppedBy(s)
	case s.Full != nil && (s.RunErr != nil || s.Left || s.Unordered) && !v.Halt.Interrupted():
		return v.FailAgain(exit.Output, "%s: there was room again for calls in flight\n%s: %s", exit.PlainText(s.Full), v.savedText(s), v.continueText("check the disk"))
	case v.Halt.Called() && (s.RunErr != nil || s.Left || s.Unordered):
		code, why := v.whyHalted()
		return v.FailAgain(code, "%s, %s. %s", why, v.savedText(s), v.continueText(""))
	case s.OverBudget != nil:
		return v.overBudget(s)
	case errors.Is(s.RunErr, batch.ErrTooManyFailures):
		return v.FailAgain(exit.Bound, "stopped: %d of %s failed in this run (--max-failures %s): %s\n%s. %s",
			s.Failed, words.Count(s.Failed+s.Succeeded, "item"), v.Flags.MaxFailures.String(), v.Failed.String(), v.savedText(s), v.continueText(""))
	case errors.Is(s.RunErr, machine.ErrTooManyLanes):
		return v.FailAgain(exit.Bound, "the input has more models than allowed at once (max-lanes in the file of --config); %s: %s",
			v.savedText(s), v.continueText("raise it or check the input"))
	case errors.Is(s.RunErr, batch.ErrConfig):
		return exit.Refuse("%s", exit.PlainText(s.RunErr))
	case s.RunErr != nil:
		return v.FailAgain(exit.ItemsFailed, "%s; %s. %s", exit.PlainText(s.RunErr), v.savedText(s), v.continueText(""))
	case s.Changed != nil:
		return v.FailAgain(exit.ItemsFailed, "%s\n%s; %s", exit.PlainText(s.Changed), v.savedText(s), v.continueText("ask the changed items"))
	}
	return v.itemsFailed(s)
}

// inputEnded is the end of a run that cannot read the rest of its input. After the first call its exit code is no
// longer that of a refusal, which promises that nothing was called.
func (v *Verdict) inputEnded(s *promptfile.Sums) error {
	code, sofar := exit.Usage, "nothing was called"
	if s.Counters.Calls > 0 || errors.Is(s.InputErr, promptfile.ErrChanged) {
		code, sofar = exit.ItemsFailed, v.savedText(s)
	}
	var bad *prompts.LineError
	if errors.As(s.InputErr, &bad) && bad.LacksModel() {
		end := v.ending(v.Args, code, "%s; %s", sofar, v.continueText("name a model for lines that have none"))
		end.Resume += v.withModel()
		return end
	}
	return v.FailAgain(code, "%s\n%s; %s", exit.PlainText(s.InputErr), sofar, v.continueText("correct the input, which is not read beyond that"))
}

// continueText returns the words before the line that resumes. advice says what to do first; "" if nothing.
func (v *Verdict) continueText(advice string) string {
	lead := "Continue with:"
	switch saved, again := v.Flags.ToStdout(), v.Input == "-"; {
	case saved && again:
		lead = "Save what was written as " + settings.ResultsName + ", give the same input again and continue with:"
	case saved:
		lead = "Save what was written as " + settings.ResultsName + " and continue with:"
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
func (v *Verdict) unwritable(err error) error {
	var unsaved *saver.Error
	advice := "make room or check the disk"
	switch {
	case errors.Is(err, saver.ErrReplaced):
		advice = "items that are not in the file will be asked again"
	case errors.As(err, &unsaved):
		advice = "make room or check the disk: only unsaved items are asked again"
	}
	return v.FailAgain(exit.Output, "%s\n%s", exit.OwnLines(exit.PlainText(err)), v.continueText(advice))
}

// savedText sums up the results of the run so far.
func (v *Verdict) savedText(s *promptfile.Sums) string {
	text := fmt.Sprintf("%s saved", words.Count(s.Succeeded, "result"))
	if s.Failed > 0 {
		text += fmt.Sprintf(", %s failed (%s)", words.Count(s.Failed, "item"), v.Flags.ErrorsPath())
	}
	return text + v.unaskedText()
}

// unaskedText counts the items of the input that are left; "" if none are, or the number is not known. Some may have
// been asked in calls that broke or were abandoned.
func (v *Verdict) unaskedText() string {
	rep := v.Report
	if rep == nil || rep.Left == 0 || rep.Of == 0 {
		return ""
	}
	what := "asked"
	if rep.Counters.HandedOver > 0 || v.Halt.Ctx.Err() != nil {
		what = "answered"
	}
	return fmt.Sprintf(", %s of %s not %s", words.Number(rep.Left), words.Number(rep.Of), what)
}

// itemsFailed is the end of a run that has gone through its whole input.
func (v *Verdict) itemsFailed(s *promptfile.Sums) error {
	failed, skipped := s.Failed+s.EarlierFailed, linesSkipped(s.Skipped, s.Untranslatable)
	switch {
	case failed == 0 && skipped == "":
		return nil
	case failed == 0:
		return &exit.Ending{Code: exit.ItemsFailed, Text: fmt.Sprintf("%s skipped: see %s", skipped, v.Flags.ErrorsPath())}
	}
	text := fmt.Sprintf("%s failed for good: see %s", words.Count(failed, "item"), v.Flags.ErrorsPath())
	if s.EarlierFailed > 0 && s.Failed > 0 {
		text = fmt.Sprintf("%s failed for good, %d of them in an earlier run: see %s", words.Count(failed, "item"), s.EarlierFailed, v.Flags.ErrorsPath())
	}
	if skipped != "" {
		text += fmt.Sprintf("; %s skipped", skipped)
	}
	text += string(v.whyFailed(s))
	if !v.Flags.RetryFailed && !v.Flags.ToStdout() {
		text += "\nretry them with the same command and --retry-failed"
	}
	return &exit.Ending{Code: exit.ItemsFailed, Text: text}
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

// FaultOf returns the provider package's error in an error's chain; nil if there is none.
func FaultOf(err error) *provider.Error {
	if err == nil {
		return nil // for every answered call: errors.As would allocate
	}
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// stoppedBy is the end of a run that the provider no longer serves.
func (v *Verdict) stoppedBy(s *promptfile.Sums) error {
	advice := v.adviceFor(s.Stopped)
	if e := FaultOf(s.Stopped); e != nil && e.Kind == provider.Unauthorized && e.Status == http.StatusForbidden {
		advice += "; if only some items are forbidden, add --keep-going"
	}
	return v.FailAgain(exit.Stopped, "stopped: %s\n%s: %s", ReasonOf(s.Stopped), v.savedText(s), v.continueText(advice))
}

// adviceFor returns what a user may do about the cause that stopped a run.
func (v *Verdict) adviceFor(stopped error) string {
	e := FaultOf(stopped)
	switch {
	case errors.Is(stopped, batch.ErrWaitTooLong):
		return "wait until then"
	case errors.Is(stopped, batch.ErrAlike):
		return v.alikeAdvice(stopped)
	case errors.Is(stopped, batch.ErrOutage):
		return v.outageAdvice(e)
	case errors.Is(stopped, batch.ErrNoAnswer) && v.Flags.Fleet != nil:
		return v.lanesAdvice(provider.Misconfigured)
	case errors.Is(stopped, batch.ErrNoAnswer):
		return v.Flags.WhereFrom(whatToCheck(stopped))
	case e == nil:
		return "check what the provider asks for"
	}
	if v.Flags.Fleet != nil && e.Kind != provider.QuotaExhausted {
		return v.lanesAdvice(e.Kind)
	}
	switch e.Kind {
	case provider.QuotaExhausted:
		return "add credit or raise the quota (or wait until it is renewed)"
	case provider.Unauthorized:
		return v.Account.KeyAdvice()
	case provider.ModelNotFound:
		if v.Flags.IsTheirOwn() {
			return strings.TrimSuffix("check the model's name (--model) and "+v.Flags.MadeOf, " and ")
		}
		if e.Code == "" { // a server may have no such page
			return v.Flags.WhereFrom("check --base-url, whose path often ends in /v1, and the model's name (--model)")
		}
		return v.Flags.WhereFrom("check the model's name (--model) and --base-url")
	case provider.Misconfigured:
		return v.Flags.WhereFrom(whatToCheck(stopped))
	}
	return "check what the provider asks for"
}

// Advice says what a user may do about one call that has failed, before any run.
func Advice(f *Facts, err error) string {
	if e := FaultOf(err); e == nil || e.Kind.BreakerCounts() {
		return f.Flags.WhereFrom(whatToCheck(err))
	}
	return (&Verdict{Facts: f}).adviceFor(err)
}

// LaneAdvice returns what a user may do about a stopped lane of the file, while others may go on.
func (v *Verdict) LaneAdvice(lane string, stopped error) string {
	if e := FaultOf(stopped); e != nil && e.Kind == provider.Unauthorized {
		if of := v.Account.LaneNamed(lane); of != nil {
			return of.KeyAdvice()
		}
	}
	return v.adviceFor(stopped)
}

// lanesAdvice says what a user may do about lanes of the file that were refused.
func (v *Verdict) lanesAdvice(kind provider.Kind) string {
	if kind == provider.Unauthorized {
		return v.Account.KeyAdvice()
	}
	return fmt.Sprintf("check the lanes and models in %s, as with headrace lanes --try --config %s", v.Flags.Config, settings.ShellQuote(v.Flags.Config))
}

// alikeAdvice says what a user may do about items that all fail alike.
func (v *Verdict) alikeAdvice(stopped error) string {
	e := FaultOf(stopped)
	switch {
	case e != nil && e.Kind.BreakerCounts():
		return v.Flags.WhereFrom(whatToCheck(e))
	case e != nil && e.Kind == provider.Misfit:
		return "make the prompts and the schema agree, or ask every item with --keep-going; --retry-failed asks those again that have failed"
	}
	return "fix what they have in common, or ask every item with --keep-going"
}

// outageAdvice returns what a user may do about an outage that lasted too long. Items that always fail may look like
// one.
func (v *Verdict) outageAdvice(e *provider.Error) string {
	switch {
	case e != nil && e.Kind.Cools():
		return "check what the provider asks for, or wait longer with --outage-patience"
	case v.Flags.KeepGoing:
		return "check whether the provider is down, or wait longer with --outage-patience"
	}
	return "check whether the provider is down; if these items always fail, add --keep-going"
}

// whyFailed describes the failures of this run; where no call was answered, it adds what to check. It returns "" if
// nothing failed.
func (v *Verdict) whyFailed(s *promptfile.Sums) exit.OwnLines {
	e := v.Latest.Load()
	switch {
	case s.Failed == 0:
		return ""
	case s.Succeeded > 0:
		return exit.OwnLines(fmt.Sprintf("\n%s failed and the rest were answered: %s", shareText(s.Failed, s.Succeeded+s.Failed), v.Failed.String()))
	case s.EarlierDone > 0 || e == nil: // e is nil if every call was answered and the answers are failures
		return exit.OwnLines("\n" + v.Failed.String())
	}
	text := "\nno call was answered: " + v.Redact(ReasonOf(e))
	if e.Kind.BreakerCounts() {
		text += "\n" + v.Flags.WhereFrom(whatToCheck(e))
	}
	return exit.OwnLines(text)
}

// Redact removes the key from a text. The code that made the text should have done so: this
// is the second lock on that door.
func (f *Facts) Redact(s string) string {
	return provider.RedactText(s, f.Account.Secrets()...)
}

// RedactError returns the text of an error without the key; "" for nil.
func (f *Facts) RedactError(err error) string {
	if err == nil {
		return ""
	}
	return f.Redact(err.Error())
}

// FailureCode returns the kind of a failure, as in the errors file, and the provider's code or else the HTTP status.
// The code may hold anything.
func (f *Facts) FailureCode(err error) (kind, code string) {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic", ""
	}
	e := FaultOf(err)
	switch {
	case e == nil:
		return provider.Unknown.String(), ""
	case e.Code != "":
		code = f.Redact(e.Code)
	case e.Status > 0:
		code = strconv.Itoa(e.Status)
	}
	return e.Kind.String(), code
}
