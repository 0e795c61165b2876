package provider

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxErrorBody is the number of bytes kept of a failed answer's body. Providers'
// error objects are under 4 KiB; 64 KiB leaves room for a proxy's HTML page
// while a thousand failures at once stay under 64 MiB.
const MaxErrorBody = 64 << 10

// maxMessage bounds Error.Message in bytes: what a person reads on one line of
// a terminal or log, not a document.
const maxMessage = 1 << 10

// Error is a failed call in our own words. Only Kind is always set: a failure
// without an answer has Status 0 and Err, one with an answer has Status and
// what could be read from headers and body.
type Error struct {
	// Kind decides what happens next.
	Kind Kind
	// Provider names the provider that answered ("openai"); the text begins with it.
	Provider string
	// Status is the HTTP status, 0 if no answer came. A 200 that carried an
	// error object keeps its 200.
	Status int
	// Code, Type and Param are the provider's own words, "" where it gave
	// none. A prompt that is too long has the code "context_length_exceeded"
	// also where the provider says so only in prose.
	Code, Type, Param string
	// Message is the provider's prose, at most 1 KiB.
	Message string
	// RequestID is the id for which the provider's support asks.
	RequestID string
	// RetryAfter is the wait that the server asked for, between 0 and
	// MaxRetryAfter. It means something only if HasRetryAfter.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// OddWait names the header in which the server asked for an impossible wait: over
	// MaxRetryAfter, negative, or no duration at all. The wait then counts as unnamed. "" if
	// there is no such header.
	OddWait string
	// Slow says that the server minds the growth of the rate rather than the
	// rate (slow_down, acceleration limits): come back slower than usual.
	Slow bool
	// Unclear says that the server may mean a limit per minute or one per day
	// and does not say which. After the third in a row, take it for
	// QuotaExhausted.
	Unclear bool
	// Quota is the limit that was hit, as the message describes it; zero if it
	// does not.
	Quota QuotaNote
	// Body is the answer's body as sent, at most MaxErrorBody bytes; nil if
	// there was none.
	Body []byte
	// Err is the cause where there is one: a Go error, or the user's own.
	Err error

	long bool // its prose says that the request is too long
}

// QuotaNote is a limit as an error message describes it. Fields that the
// message does not mention are zero.
type QuotaNote struct {
	// Limit, Used and Requested are in the unit that On names.
	Limit, Used, Requested float64
	// Per is the limit's period: "second", "min", "hour", "day" or "month".
	Per string
	// On is the dimension that is limited: "requests", "tokens", "input_tokens" or
	// "output_tokens".
	On Dimension
	// TryAgain is the wait that the message prints, at most MaxRetryAfter.
	TryAgain time.Duration
}

// Error returns one line: whose error, its kind, status, code and message. It
// never contains a request's headers, hence no key.
func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	if e.Provider != "" {
		parts = append(parts, e.Provider)
	}
	parts = append(parts, e.Kind.String())
	if head := e.head(); head != "" {
		parts = append(parts, head)
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	} else if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// head returns the status and the provider's most telling word.
func (e *Error) head() string {
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	word := e.Code
	if word == "" || word == status { // Google's code is the status once more
		word = e.Type
	}
	if word == e.Kind.String() { // it was just said
		word = ""
	}
	return strings.TrimSpace(status + " " + word)
}

// TooLong reports whether the request is too long for the model or the server.
func (e *Error) TooLong() bool {
	switch strings.ToLower(e.Code) {
	case tooLongCode, "exceed_context_size_error", "request_too_large", "string_above_max_length":
		return true
	}
	return e.long || e.Status == http.StatusRequestEntityTooLarge
}

// Is makes errors.Is(err, kind) true for the error's own kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.Err }

// Permanent marks err as final, as no further try of the item can help: the result is an error
// of kind Invalid that wraps err. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Invalid, Err: err}
}

// RetryAfter says that the call behind err was throttled and that its lane must wait for d. The
// result is an error of kind Throttled that wraps err. A negative d counts as 0. A d over
// MaxRetryAfter, which no server can mean, counts as unnamed. RetryAfter(d, nil) is nil: a call
// that did not fail has nothing to wait for.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	if d > MaxRetryAfter {
		return &Error{Kind: Throttled, OddWait: d.String(), Err: err}
	}
	d = max(d, 0)
	return &Error{Kind: Throttled, RetryAfter: d, HasRetryAfter: true, Err: err}
}

// asError finds an *Error, or else a bare Kind, in err's chain.
func asError(err error) (*Error, bool) {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	var k Kind
	if errors.As(err, &k) {
		return &Error{Kind: k, Err: err}, true
	}
	return nil, false
}

// clip shortens s to at most n bytes without splitting a character, and drops
// what would break a line of a terminal or a log.
func clip(s string, n int) string {
	if len(s) <= n && strings.IndexFunc(s, unusual) < 0 {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > n {
		cut := n
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.Join(strings.FieldsFunc(s, isBreak), " ")
}

// isBreak reports whether a rune separates words: a space, or a control character of a terminal.
func isBreak(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }

// unusual reports whether a rune is none of the letters, digits and signs that words are made of.
func unusual(r rune) bool { return r <= ' ' || r > '~' }
