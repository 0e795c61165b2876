package permit

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

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
		Text: cut(err.Error()), Wait: errors.Is(err, machine.ErrWaitTooLong),
		Silent: errors.Is(err, machine.ErrNoAnswer), Outage: errors.Is(err, machine.ErrOutage),
	}
	var kind provider.Kind
	var fault *provider.Error
	switch {
	case errors.As(err, &fault):
		c.Kind, c.Status, c.Code = fault.Kind.String(), fault.Status, cut(fault.Code)
	case errors.As(err, &kind):
		c.Kind = kind.String()
	}
	return c
}

func cut(text string) string {
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
	for k := provider.Unknown; k <= provider.Misconfigured; k++ {
		if k.String() == word {
			return k
		}
	}
	return provider.Unknown
}
