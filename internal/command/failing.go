package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// Items that fail while the others are answered: the bounds of the notice about them.

const (
	// failingCalls is the number of calls of an item that must break before a notice names
	// it: a third in a row is no coincidence any more.
	failingCalls = 3
	// failingFew is the number of items that must be answered for each one that keeps
	// failing, before the trouble counts as that item's.
	failingFew = 10
	// mostFailing bounds the items that are watched: only in an outage do as many fail at
	// once.
	mostFailing = 1000
	// mostNamed is the number of items that a sentence names.
	mostNamed = 3
	// nameLength is the number of characters that a sentence shows of an item's name.
	nameLength = 40
)

// failing holds the items whose calls break and that have not ended. Workers note them.
type failing struct {
	mu    sync.Mutex
	items map[string]int // calls that broke, by the item's id
	said  bool
}

// note counts a call of an item that broke, and reports whether the item should be looked at.
func (f *failing) note(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said || f.items[id] == 0 && len(f.items) >= mostFailing {
		return false
	}
	if f.items == nil {
		f.items = map[string]int{}
	}
	f.items[id]++
	return f.items[id] >= failingCalls
}

// drop forgets an item that has ended.
func (f *failing) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, id)
}

// say reports whether to give the notice now, which happens once, and for how many items.
func (f *failing) say(p *observe.Snapshot) (items int, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.items {
		if calls >= failingCalls {
			items++
		}
	}
	now = !f.said && p.Open+p.HalfOpen == 0 && p.Answered >= failingFew*items
	f.said = f.said || now
	return items, now
}

// noteFailing notes a call that broke, and says once that an item keeps failing while the
// others are answered.
func (r *runner) noteFailing(it *promptfile.Item, e *provider.Error) {
	if r.recorder == nil || !e.Kind.BreakerCounts() || e.Kind.Cools() || !r.failing.note(it.ID) {
		return
	}
	p := r.recorder.Snapshot(r.clock.Now())
	if n, now := r.failing.say(&p); now {
		text := fmt.Sprintf("%s so far while the rest are answered: %s", keepFailing(n), r.failedAs(it.ID, failingCalls, e))
		if n > 1 {
			text += ", and so on"
		}
		r.console.Notice(event.Failing, text)
	}
}

// keepFailing says that the calls of items keep breaking. The items have not ended, as a later
// call may still be answered.
func keepFailing(items int) string {
	if items == 1 {
		return "1 item keeps failing"
	}
	return words.Count(items, "item") + " keep failing"
}

// failedItems holds the first items of a run that failed, and why. It belongs to the
// goroutine that takes the results.
type failedItems struct {
	named  []string
	unsaid int
}

func (r *runner) noteFailed(res *promptfile.Result) {
	if len(r.failed.named) == mostNamed {
		r.failed.unsaid++
		return
	}
	r.failed.named = append(r.failed.named, r.failedAs(res.Item.ID, res.Calls, faultOf(res.Err)))
}

// faultIn restores, from a line of the errors file, the error that the line was written from;
// nil if no call has failed.
func faultIn(l *journal.Line) *provider.Error {
	e := &provider.Error{}
	for e.Kind.String() != l.Error.Code {
		if e.Kind++; e.Kind > provider.Misconfigured {
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
	if e.Kind == provider.TransportFault && rest != "" && !saysWhatCame(rest) {
		e.Err = errors.New(rest)
		return e
	}
	e.Message = rest
	return e
}

// saysWhatCame reports whether a fault describes what came in place of an answer, and not why the
// rest is missing.
func saysWhatCame(message string) bool {
	return strings.HasPrefix(message, "an HTML page") || strings.HasPrefix(message, "the body is ")
}

// String names them.
func (f *failedItems) String() string {
	text := strings.Join(f.named, ", ")
	if f.unsaid > 0 {
		text += ", …"
	}
	return text
}

// failedAs names an item, its failure, and the number of its calls.
func (r *runner) failedAs(id string, calls int, e *provider.Error) string {
	name := printable.Line(id)
	if runes := []rune(name); len(runes) > nameLength {
		name = string(runes[:nameLength-1]) + "…"
	}
	switch {
	case e == nil:
		return name
	case e.Kind == provider.Timeout && r.flags.timeout > 0:
		return fmt.Sprintf("%s (%s of %s each went unanswered; --timeout %s if it needs longer)",
			name, words.Count(calls, "call"), span(r.flags.timeout.Seconds()), span(longer*r.flags.timeout.Seconds()))
	case calls > 1:
		return fmt.Sprintf("%s (%s, %s)", name, r.redactEarly(reasonOf(e)), words.Count(calls, "call"))
	}
	return fmt.Sprintf("%s (%s)", name, r.redactEarly(reasonOf(e)))
}

// longer is the factor by which the suggested timeout exceeds the present one, where calls
// of an item go unanswered.
const longer = 5

// shareOf puts a share of the items into words.
func shareOf(n, of int) string {
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
