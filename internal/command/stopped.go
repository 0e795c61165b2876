package command

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider"
)

// stoppedBy is the end of a run that the provider no longer serves.
func (r *runner) stoppedBy(s *promptfile.Sums) error {
	advice := r.adviceFor(s.Stopped)
	if e := faultOf(s.Stopped); e != nil && e.Kind == provider.Unauthorized && e.Status == http.StatusForbidden {
		advice += "; if only some items are forbidden, add --keep-going"
	}
	return r.failAgain(ExitStopped, "stopped: %s\n%s: %s", reasonOf(s.Stopped), r.saved(s), r.goOn(advice))
}

// adviceFor says what a user may do about what stopped a run.
func (r *runner) adviceFor(stopped error) string {
	e := faultOf(stopped)
	switch {
	case errors.Is(stopped, batch.ErrWaitTooLong):
		return "wait until then"
	case errors.Is(stopped, batch.ErrAlike):
		return r.alikeAdvice(stopped)
	case errors.Is(stopped, batch.ErrOutage):
		return r.outageAdvice(e)
	case errors.Is(stopped, batch.ErrNoAnswer):
		return r.flags.whereFrom(toCheck(stopped))
	case e == nil:
		return "check what the provider asks for"
	}
	switch e.Kind {
	case provider.QuotaExhausted:
		return "add credit or raise the quota (or wait until it is renewed)"
	case provider.Unauthorized:
		return r.keyAdvice()
	case provider.ModelNotFound:
		if r.flags.isTheirOwn() {
			return strings.TrimSuffix("check the model's name (--model) and "+r.flags.madeOf, " and ")
		}
		if e.Code == "" { // a server may have no such page
			return r.flags.whereFrom("check --base-url, whose path often ends in /v1, and the model's name (--model)")
		}
		return r.flags.whereFrom("check the model's name (--model) and --base-url")
	case provider.Misconfigured:
		return r.flags.whereFrom(toCheck(stopped))
	}
	return "check what the provider asks for"
}

// alikeAdvice says what a user may do about items that all fail alike.
func (r *runner) alikeAdvice(stopped error) string {
	if e := faultOf(stopped); e != nil && e.Kind.BreakerCounts() {
		return r.flags.whereFrom(toCheck(e))
	}
	return "fix what they have in common, or ask every item with --keep-going"
}

// outageAdvice says what a user may do about an outage that lasted too long. Items that always
// fail may look like one.
func (r *runner) outageAdvice(e *provider.Error) string {
	switch {
	case e != nil && e.Kind.Cools():
		return "check what the provider asks for, or wait longer with --outage-patience"
	case r.flags.keepGoing:
		return "check whether the provider is down, or wait longer with --outage-patience"
	}
	return "check whether the provider is down; if these items always fail, add --keep-going"
}

// troubles records the breakers that opened during a run. Only the observer uses it until
// the run is over.
type troubles struct {
	opened int    // the number of times
	why    string // why calls broke, the latest time
}

// hear puts an event's reasons for broken calls into words, and notes them.
func (r *runner) hear(e batch.Event) batch.Event {
	if e.Transition != nil {
		t := *e.Transition // others get the same event
		t.Cause = r.reason(t.Cause)
		if t.Reason == machine.ByBreaker && t.To == machine.Cooling {
			r.troubles.opened++
			r.troubles.why = reasonOf(t.Cause)
		}
		e.Transition = &t
	}
	return e
}

// reason is reasonOf without the key; nil for nil.
func (r *runner) reason(err error) error {
	if err == nil {
		return nil
	}
	return &reason{r.redact(reasonOf(err)), err}
}

// noteFault notes a call that was not answered, and says once that a server names an
// implausible wait.
func (r *runner) noteFault(it *promptfile.Item, err error) {
	e := faultOf(err)
	if e == nil {
		return
	}
	r.latest.Store(e)
	r.noteFailing(it, e)
	if e.OddWait != "" {
		r.oddOnce.Do(func() {
			r.console.Notice(event.OddWait, fmt.Sprintf("the provider asks for an absurd wait (%s), which is ignored", shown(r.redact(e.OddWait))))
		})
	}
}

// whyFailed says why the latest call failed, and, where no call was answered at all, what to
// check; "" if nothing failed in this run, or that is not known.
func (r *runner) whyFailed(s *promptfile.Sums) ownLines {
	e := r.latest.Load()
	switch {
	case s.Failed == 0:
		return ""
	case s.Succeeded > 0:
		return ownLines(fmt.Sprintf("\n%s failed and the rest were answered: %s", shareOf(s.Failed, s.Succeeded+s.Failed), r.failed.String()))
	case s.EarlierDone > 0 || e == nil: // e is nil if every call was answered and the answers are failures
		return ownLines("\n" + r.failed.String())
	}
	text := "\nno call was answered: " + r.redact(reasonOf(e))
	if e.Kind.BreakerCounts() {
		text += "\n" + r.flags.whereFrom(toCheck(e))
	}
	return ownLines(text)
}
