package jsonl

import (
	"errors"
	"fmt"
)

// The kinds of complaint about a line; errors.Is finds them in a LineError.
var (
	ErrTooLong     = errors.New("line too long")
	ErrText        = errors.New("not UTF-8 text")
	ErrNotJSON     = errors.New("not JSON")
	ErrShape       = errors.New("unknown shape")
	ErrURL         = errors.New("unknown url")
	ErrNoModel     = errors.New("no model")
	ErrStream      = errors.New("streamed answer asked for")
	ErrDuplicateID = errors.New("id used twice")
	ErrUnsupported = errors.New("form not supported")
)

// LineError is a complaint about one line of input. The lines after it can
// still be read.
type LineError struct {
	File   string // the reader's name for its input
	Line   int    // from 1
	Reason string // what is wrong
	Advice string // what to do about it
	Err    error  // the kind: ErrNotJSON, ErrShape, …

	key   string // of what the line holds, see Key
	id    string // of an id used twice: the id,
	first int    // the line that had it first, 0 if not known,
	bare  bool   // and whether the line would have got it by its number
}

// Error gives file, line, reason and what to do, on one line, in the form that
// editors jump to: "prompts.jsonl:17: not JSON: …: fix the line or remove it".
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Reason, e.Advice)
}

// Unwrap gives the kind of the complaint.
func (e *LineError) Unwrap() error { return e.Err }

// CodeInvalidLine is the code of a line that is no request, in an errors file.
const CodeInvalidLine = "invalid_line"

// Key is what a line that is no request is known by on a later run: 32 hex digits
// made of what it holds, and of how many lines like it came before.
func (e *LineError) Key() string { return e.key }

// Failed is the line for the errors file, where bad lines are skipped rather than
// the end of all.
func (e *LineError) Failed() Line {
	l := LineFor(&Request{Line: e.Line, ID: LineID(e.Line), Key: e.key})
	l.Error = &Failure{Code: CodeInvalidLine, Message: e.Error()}
	return l
}

// keyed gives the key of a line of which only the number and its file are known.
func (e *LineError) keyed(r *Reader) *LineError {
	first := r.keys.bad([]byte(r.cfg.Name))
	e.key = nth(first, r.bad.count(first)).String()
	return e
}

// complain makes a LineError that knows everything but its place.
func complain(kind error, advice, format string, args ...any) *LineError {
	return &LineError{Err: kind, Advice: advice, Reason: fmt.Sprintf(format, args...)}
}

const adviceFix = "fix the line or remove it"

// shown is how much of a file's own text a complaint repeats, in bytes: enough
// to find it, too little to flood a terminal.
const shown = 60

// clip shortens s for a complaint, at a whole character.
func clip(s string) string {
	if len(s) <= shown {
		return s
	}
	end := shown
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
