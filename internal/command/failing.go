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

// Items that fail while the others are answered: which, of what, and how often.

const (
	// failingCalls is how many calls of an item must break for it to be named: a third in a
	// row is no chance any more.
	failingCalls = 3
	// failingFew is how many items must be answered for each that keeps failing, for the
	// trouble to be that item's.
	failingFew = 10
	// mostFailing bounds how many items are watched: as many fail at once only in an outage.
	mostFailing = 1000
	// mostNamed is how many items a sentence names.
	mostNamed = 3
	// nameLength is how much of an item's name it shows, in characters.
	nameLength = 40
)

// failing are the items whose calls break, and that have not ended. Workers note them.
type failing struct {
	mu    sync.Mutex
	items map[string]int // calls that broke, by id
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

// say reports whether it is to be said now, which it is once, of how many items.
func (f *failing) say(p *observe.Picture) (items int, now bool) {
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
	p := r.recorder.Look(r.clock.Now())
	if n, now := r.failing.say(&p); now {
		text := fmt.Sprintf("%s so far while the rest are answered: %s", keepFailing(n), r.failedAs(it.ID, failingCalls, e))
		if n > 1 {
			text += ", and so on"
		}
		r.console.Notice(event.Failing, text)
	}
}

// keepFailing says of items that have not ended that their calls break. A later call may still be
// answered.
func keepFailing(items int) string {
	if items == 1 {
		return "1 item keeps failing"
	}
	return words.Count(items, "item") + " keep failing"
}

// failedItems are the first items of a run that failed, and how. They belong to the goroutine
// that takes the results.
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

// faultIn is what a line of the errors file tells of the error from which it was written; nil
// if no call has failed.
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

// saysWhatCame reports whether a fault tells what came in place of an answer, not why no more came.
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

// failedAs names an item, of what it failed, and in how many calls.
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

// longer is how many times as long a call may take by the timeout that is suggested where
// calls of an item go unanswered.
const longer = 5

// shareOf is a part of the items in words.
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
