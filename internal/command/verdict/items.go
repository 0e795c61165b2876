package verdict

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
)

// Items that fail while the others are answered: the bounds of the notice about them.

const (
	// FailingCalls is the number of calls of an item that must break before a notice names
	// it: a third in a row is no coincidence any more.
	FailingCalls = 3
	// FailingFew is the number of items that must be answered for each one that keeps
	// failing, before the trouble counts as that item's.
	FailingFew = 10
	// MostFailing bounds the items that are watched: only in an outage do as many fail at
	// once.
	MostFailing = 1000
	// mostNamed is the number of items that a sentence names.
	mostNamed = 3
	// nameLength is the number of characters that a sentence shows of an item's name.
	nameLength = 40
)

// failedItems holds the first items of a run that failed, and why. It belongs to the
// goroutine that takes the results.
type failedItems struct {
	named   []string
	unnamed int
}

// NoteFailed notes an item that failed for good.
func (v *Verdict) NoteFailed(res *promptfile.Result) {
	if len(v.Failed.named) == mostNamed {
		v.Failed.unnamed++
		return
	}
	v.Failed.named = append(v.Failed.named, v.FailedAs(res.Item.ID, res.Calls, FaultOf(res.Err)))
}

// NameFailed names the items that have failed elsewhere: the first of them by their lines in the
// errors file, and the number of all.
func (v *Verdict) NameFailed(first []journal.Line, all int) {
	f := &v.Failed
	for i := range first[:min(len(first), mostNamed)] {
		l := &first[i]
		f.named = append(f.named, v.FailedAs(l.CustomID, l.Headrace.Calls, faultOfLine(l)))
	}
	f.unnamed = all - len(f.named)
}

// faultOfLine restores the error from which a line of the errors file was written; nil if no call has failed.
func faultOfLine(l *journal.Line) *provider.Error {
	e := &provider.Error{}
	for e.Kind.String() != l.Error.Code {
		if e.Kind++; e.Kind > provider.Misfit {
			return nil
		}
	}
	from, rest, ok := strings.Cut(l.Error.Message, l.Error.Code)
	if !ok {
		return nil
	}
	e.Provider, rest = strings.TrimSuffix(from, ": "), strings.TrimPrefix(rest, ": ")
	if l.Response == nil {
		if _, why, ok := strings.Cut(rest, `": `); ok && strings.HasPrefix(rest, `Post "`) { // as net/http begins: the address is no news
			rest = why
		}
		e.Err = errors.New(rest)
		return e
	}
	e.Status = l.Response.StatusCode
	head, message, _ := strings.Cut(rest, ": ")
	if code, ok := strings.CutPrefix(head, strconv.Itoa(e.Status)); ok {
		e.Code, rest = strings.TrimSpace(code), message
	}
	if e.Kind == provider.TransportFault && rest != "" && !describesAnswer(rest) {
		e.Err = errors.New(rest)
		return e
	}
	e.Message = rest
	return e
}

// describesAnswer reports whether a fault describes what came in place of an answer, and not why the
// rest is missing.
func describesAnswer(message string) bool {
	return strings.HasPrefix(message, "an HTML page") || strings.HasPrefix(message, "the body is ")
}

// String names them.
func (f *failedItems) String() string {
	text := strings.Join(f.named, ", ")
	if f.unnamed > 0 {
		text += ", …"
	}
	return text
}

// FailedAs describes a failed item: its name, its failure, and the number of its calls.
func (v *Verdict) FailedAs(id string, calls int, e *provider.Error) string {
	name := words.Clip(printable.Line(id), nameLength)
	switch {
	case e == nil:
		return name
	case e.Kind == provider.Timeout && v.Flags.Timeout > 0:
		return fmt.Sprintf("%s (%s of %s each went unanswered; --timeout %s if it needs longer)",
			name, words.Count(calls, "call"), words.Span(v.Flags.Timeout.Seconds()), words.Span(timeoutFactor*v.Flags.Timeout.Seconds()))
	case calls > 1:
		return fmt.Sprintf("%s (%s, %s)", name, v.redactEarly(ReasonOf(e)), words.Count(calls, "call"))
	}
	return fmt.Sprintf("%s (%s)", name, v.redactEarly(ReasonOf(e)))
}

// timeoutFactor is the factor by which the suggested timeout exceeds the present one, where calls
// of an item go unanswered.
const timeoutFactor = 5

// shareText describes a share of the items.
func shareText(n, of int) string {
	if n == of {
		return "all items"
	}
	switch percent := 100 * float64(n) / float64(of); {
	case percent < 0.1:
		return "less than 0.1 % of the items"
	case percent < 10:
		return fmt.Sprintf("%.1f %% of the items", percent)
	default:
		return fmt.Sprintf("%.0f %% of the items", percent)
	}
}
