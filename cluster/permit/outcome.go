package permit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Costs and outcomes have short names on the bus, and words for the numbers of the core: two
// versions of the core may number differently.

// A Cost is a [limiter.Cost] as it goes over the bus: in whole units, rounded up. No requests
// mean one.
type Cost struct {
	Requests float64 `json:"r,omitempty"`
	Input    float64 `json:"i,omitempty"`
	Output   float64 `json:"o,omitempty"`
}

// CostOf returns c as it goes over the bus.
func CostOf(c limiter.Cost) Cost {
	if c.Requests == 1 {
		c.Requests = 0
	}
	return Cost{Requests: math.Ceil(c.Requests), Input: math.Ceil(c.Input), Output: math.Ceil(c.Output)}
}

// Limiter returns the cost in the core's terms.
func (c Cost) Limiter() limiter.Cost {
	if c.Requests <= 0 {
		c.Requests = 1
	}
	return limiter.Cost(c)
}

// maxCost is more than any call draws.
const maxCost = 1e12

func (c Cost) valid() bool {
	return isValidAmount(c.Requests) && isValidAmount(c.Input) && isValidAmount(c.Output)
}

func isValidAmount(x float64) bool { return x >= 0 && x <= maxCost } // false of NaN

// An Outcome is a [machine.Outcome] as it goes over the bus, with the cause as text. No key,
// prompt or answer is in it.
type Outcome struct {
	Signal      string        `json:"s,omitempty"` // "": it was answered as hoped
	Latency     time.Duration `json:"l,omitempty"`
	Directed    bool          `json:"dir,omitempty"`
	RetryAfter  time.Duration `json:"ra,omitempty"`
	Unclear     bool          `json:"unclear,omitempty"`
	Timeout     bool          `json:"timeout,omitempty"`
	Way         uint8         `json:"way,omitempty"`
	Unsent      bool          `json:"unsent,omitempty"`
	Slow        bool          `json:"slow,omitempty"`
	On          string        `json:"on,omitempty"`
	Sightings   []Sighting    `json:"h,omitempty"`
	Actual      *Cost         `json:"t,omitempty"` // nil: it was not measured
	Cached      float64       `json:"hit,omitempty"`
	Alike       uint32        `json:"alike,omitempty"` // 0 with OnlyIfFirst: an earlier worker's, which counts no rows
	First       uint8         `json:"of,omitempty"`
	Later       uint8         `json:"ofl,omitempty"`
	Again       bool          `json:"again,omitempty"`
	Account     bool          `json:"acct,omitempty"`
	OnlyIfFirst bool          `json:"first,omitempty"` // for earlier keepers: it stops a limit that was never answered
	Cause       *Cause        `json:"why,omitempty"`
}

// A Sighting is a [limiter.Sighting] as it goes over the bus.
type Sighting struct {
	On        string        `json:"d"`
	Limit     float64       `json:"l"`
	Window    time.Duration `json:"w,omitempty"`
	Remaining float64       `json:"r"`
	Reset     time.Duration `json:"t,omitempty"`
	HasReset  bool          `json:"ht,omitempty"`
	Said      bool          `json:"said,omitempty"`
}

// signals holds the words of signals, by their number in the core.
var signals = []string{
	machine.Nothing:    "nothing",
	machine.Succeeded:  "",
	machine.Answered:   "answered",
	machine.Throttled:  "throttled",
	machine.Overloaded: "overloaded",
	machine.Failed:     "failed",
	machine.Exhausted:  "exhausted",
}

// dimensions holds the words of dimensions, likewise.
var dimensions = []string{
	limiter.None:         "",
	limiter.Requests:     "req",
	limiter.Tokens:       "tok",
	limiter.InputTokens:  "in",
	limiter.OutputTokens: "out",
}

// wordOf returns the word of a number; the first word for a number that has none.
func wordOf[N ~uint8](words []string, n N) string {
	if int(n) < len(words) {
		return words[n]
	}
	return words[0]
}

// OutcomeOf returns o as it goes over the bus.
func OutcomeOf(o machine.Outcome) *Outcome {
	w := &Outcome{
		Signal: wordOf(signals, o.Signal), Latency: o.Latency, Directed: o.Directed, RetryAfter: o.RetryAfter, Unclear: o.Unclear,
		Timeout: o.Timeout, Way: o.Way, Unsent: o.Unsent, Slow: o.Slow, On: wordOf(dimensions, o.On), Again: o.Again,
		Alike: o.Alike, First: o.First, Later: o.Later, Account: o.Account, OnlyIfFirst: o.Signal == machine.Exhausted && o.Alike != 0,
		Cause: CauseOf(o.Cause),
	}
	if o.Measured {
		actual := CostOf(o.Actual)
		w.Actual, w.Cached = &actual, o.Cached
	}
	for _, s := range o.Sightings[:min(len(o.Sightings), MaxSightings)] {
		w.Sightings = append(w.Sightings, Sighting{
			On: wordOf(dimensions, s.Dimension), Limit: s.Limit, Window: s.Window, Remaining: s.Remaining, Reset: s.Reset, HasReset: s.HasReset, Said: s.Said,
		})
	}
	return w
}

// ErrMessage is the kind of every error about a senseless message.
var ErrMessage = errors.New("permit: message")

// Machine returns the outcome in the core's terms. The error, an [ErrMessage], names the part
// that makes no sense.
func (w *Outcome) Machine() (o machine.Outcome, err error) {
	signal, on := slices.Index(signals, w.Signal), slices.Index(dimensions, w.On)
	if signal < 0 || on < 0 {
		return o, fmt.Errorf("%w: outcome: %q on %q: there is no such word", ErrMessage, w.Signal, w.On)
	}
	o = machine.Outcome{
		Signal: machine.Signal(signal), Latency: max(0, w.Latency), Directed: w.Directed, RetryAfter: w.RetryAfter, Unclear: w.Unclear,
		Timeout: w.Timeout, Way: w.Way, Unsent: w.Unsent, Slow: w.Slow, On: limiter.Dimension(on), Again: w.Again,
		Alike: w.Alike, First: w.First, Later: w.Later, Account: w.Account,
	}
	if w.OnlyIfFirst && w.Alike == 0 {
		o.Alike, o.First = 1, 1
	}
	if w.Cause != nil {
		o.Cause = w.Cause
	}
	if w.Actual != nil {
		if !w.Actual.valid() || !isValidAmount(w.Cached) {
			return o, fmt.Errorf("%w: outcome: no call draws %v", ErrMessage, *w.Actual)
		}
		o.Measured, o.Actual, o.Cached = true, w.Actual.Limiter(), w.Cached
	}
	o.Sightings, err = w.sightings()
	return o, err
}

// sightings returns the sightings in the core's terms. One that makes no sense spoils them all.
func (w *Outcome) sightings() (seen []limiter.Sighting, err error) {
	if len(w.Sightings) > MaxSightings {
		return nil, fmt.Errorf("%w: outcome: %d sightings are more than %d", ErrMessage, len(w.Sightings), MaxSightings)
	}
	for _, s := range w.Sightings {
		on := slices.Index(dimensions, s.On)
		if on <= 0 || math.IsNaN(s.Limit+s.Remaining) || math.IsInf(s.Limit+s.Remaining, 0) {
			return nil, fmt.Errorf("%w: outcome: sighting of %v on %q", ErrMessage, s.Limit, s.On)
		}
		seen = append(seen, limiter.Sighting{
			Dimension: limiter.Dimension(on), Limit: s.Limit, Window: s.Window, Remaining: s.Remaining, Reset: s.Reset, HasReset: s.HasReset, Said: s.Said,
		})
	}
	return seen, nil
}

// A Cause is an error as it goes over the bus: its text, and what programs ask of it. errors.Is
// finds in it the provider.Kind that it had, machine.ErrWaitTooLong, machine.ErrNoAnswer and
// machine.ErrOutage. errors.As finds a provider.Error.
type Cause struct {
	Text   string `json:"t"`           // at most MaxCause bytes
	Kind   string `json:"k,omitempty"` // the word of its provider.Kind; "": it had none
	Status int    `json:"s,omitempty"` // of the answer
	Code   string `json:"c,omitempty"` // the provider's own word
	Wait   bool   `json:"w,omitempty"` // it is machine.ErrWaitTooLong
	Silent bool   `json:"n,omitempty"` // it is machine.ErrNoAnswer
	Outage bool   `json:"o,omitempty"` // it is machine.ErrOutage
}

// CauseOf returns err as it goes over the bus; nil for nil.
func CauseOf(err error) *Cause {
	if err == nil {
		return nil
	}
	if c := (*Cause)(nil); errors.As(err, &c) && err.Error() == c.Text {
		return c // it came over the bus
	}
	c := &Cause{
		Text: truncate(err.Error()), Wait: errors.Is(err, machine.ErrWaitTooLong),
		Silent: errors.Is(err, machine.ErrNoAnswer), Outage: errors.Is(err, machine.ErrOutage),
	}
	var kind provider.Kind
	var fault *provider.Error
	switch {
	case errors.As(err, &fault):
		c.Kind, c.Status, c.Code = fault.Kind.String(), fault.Status, truncate(fault.Code)
	case errors.As(err, &kind):
		c.Kind = kind.String()
	}
	return c
}

// truncate cuts a text to MaxCause bytes at most, and makes it valid UTF-8.
func truncate(text string) string {
	if len(text) <= MaxCause {
		return strings.ToValidUTF8(text, "�")
	}
	end := MaxCause
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "")
}

func (c *Cause) Error() string { return c.Text }

// Is reports whether the cause is of the target's kind.
func (c *Cause) Is(target error) bool {
	switch target {
	case machine.ErrWaitTooLong:
		return c.Wait
	case machine.ErrNoAnswer:
		return c.Silent
	case machine.ErrOutage:
		return c.Outage
	}
	kind, ok := target.(provider.Kind)
	return ok && c.Kind == kind.String()
}

// As sets target to the provider's error, as far as it went over the bus.
func (c *Cause) As(target any) bool {
	fault, ok := target.(**provider.Error)
	if !ok || c.Kind == "" {
		return false
	}
	*fault = &provider.Error{Kind: kindOf(c.Kind), Status: c.Status, Code: c.Code, Message: c.Text}
	return true
}

// kindOf returns the kind of a word; provider.Unknown for a word that this version does not know.
func kindOf(word string) provider.Kind {
	for k := provider.Unknown; k <= provider.Misfit; k++ {
		if k.String() == word {
			return k
		}
	}
	return provider.Unknown
}
