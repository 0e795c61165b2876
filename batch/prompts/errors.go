package prompts

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider"
)

// The kinds of complaint about a line; errors.Is finds them in a LineError.
var (
	ErrTooLong     = lines.ErrTooLong
	ErrText        = errors.New("not UTF-8 text")
	ErrNotJSON     = errors.New("not JSON")
	ErrShape       = errors.New("unknown shape")
	ErrURL         = errors.New("unknown url")
	ErrNoModel     = errors.New("no model")
	ErrStream      = errors.New("streamed answer asked for")
	ErrDuplicateID = errors.New("id used twice")
	ErrUnsupported = errors.New("form not supported")
	// ErrUntranslatable is about a good line that cannot be translated for the provider
	// that would answer it.
	ErrUntranslatable = errors.New("not translatable")
)

// LineError is a complaint about one line of input. The lines after it can
// still be read.
type LineError struct {
	File   string // the reader's name for its input
	Line   int    // from 1; in a section or a later file, the lines above count too
	Reason string // what is wrong
	Advice string // what to do about it
	Err    error  // the kind: ErrNotJSON, ErrShape, …

	ID string // the id that the line gives, "" if there is none or it is unreadable

	// Field, Lane and Request are set for a line of kind ErrUntranslatable. Field is the
	// path of the field that cannot be translated. Lane is the lane that would have to take
	// the line, or its dialect. Request is the line's request without its Body, and without
	// its Metadata if requests are Passing.
	Field, Lane string
	Request     *Request

	// Endpoint is the endpoint of a line of kind ErrUnsupported, else "".
	Endpoint string

	linesAbove  int    // lines in the files before this one, which Error does not count
	key         string // made of the line's content, see Key
	id          string // for an id used twice: the id,
	firstLine   int    // the line that had it first, 0 if unknown,
	generatedID bool   // and whether the line would have got it from its number
}

// Error returns file, line, reason and what to do, on one line, in the form that editors
// jump to: "prompts.jsonl:17: not JSON: …: fix the line or remove it".
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.FileLine(), e.Reason, e.Advice)
}

// FileLine returns the line's number in File.
func (e *LineError) FileLine() int { return e.Line - e.linesAbove }

// Unwrap returns the kind of the complaint.
func (e *LineError) Unwrap() error { return e.Err }

// LacksModel reports whether the line names no model, so that Config.DefaultModel mends it.
func (e *LineError) LacksModel() bool { return errors.Is(e, ErrNoModel) && e.Reason == noModel }

// noModel is the reason for a line that names no model; one with an empty name has another.
const noModel = "no model"

// Key identifies, on a later run, a line that is not a request. It is 32 hex digits, made
// of the line's content, and of how many lines like it came before. An untranslatable
// line has the key of its request, "" if the reader makes no keys. So a provider that
// takes the line later finds what became of it.
func (e *LineError) Key() string { return e.key }

// withKey sets the key of a line of which only the number and the file are known.
func (e *LineError) withKey(r *Reader) *LineError {
	e.key = r.badKey([]byte(r.cfg.Name))
	return e
}

// newLineError makes a LineError without its place.
func newLineError(kind error, advice, format string, args ...any) *LineError {
	return &LineError{Err: kind, Advice: advice, Reason: fmt.Sprintf(format, args...)}
}

const (
	adviceFix       = "fix the line or remove it"
	adviceElsewhere = "choose a provider that has it, or write the line in another form"
	adviceArray     = "write one object a line, without the array around them (jq -c '.[]' FILE does that)"
)

// maxShownReason bounds, in bytes, how much of an error of Config.Takes a complaint repeats: a
// sentence or two, and not the content of somebody's field.
const maxShownReason = 300

// oneLine returns a foreign text without characters that would break a line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// untranslatable makes the complaint about a request that cannot be translated.
func (r *Reader) untranslatable(req *Request, u *provider.Untranslatable) *LineError {
	asked := *req
	if asked.Body = nil; r.cfg.Passing {
		asked.Metadata = nil
	}
	field, dialect := cmp.Or(oneLine(lines.Clip(u.Field)), "the body"), u.Dialect
	if u.Lane != "" {
		dialect = fmt.Sprintf("lane %s (%s)", u.Lane, u.Dialect)
	}
	why := oneLine(lines.ClipTo(u.Why, maxShownReason))
	c := newLineError(ErrUntranslatable, "remove it, or choose a provider that takes the line as it is",
		"%s cannot be translated for %s: %s", field, dialect, why)
	if strings.HasPrefix(why, "is missing") {
		c = newLineError(ErrUntranslatable, "add it, or choose a provider that takes the line as it is",
			"%s %s: the line cannot be translated for %s", field, why, dialect)
	}
	c.Field, c.Lane, c.Request, c.key = field, cmp.Or(u.Lane, u.Dialect), &asked, asked.Key
	return c
}

// adviceFor returns the advice for a line that is not a JSON object. It differs for a file
// that begins with an array.
func (r *Reader) adviceFor(text []byte) string {
	if r.first == 1 && text[0] == '[' {
		return adviceArray
	}
	return adviceFix
}

// countOf returns a number with its noun, in the singular or the plural.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// MaxComplaints is the number of bad lines that a list of them names; the rest are counted.
// A hundred fill a few screens, and a file of another kind has one on each line.
const MaxComplaints = 100
