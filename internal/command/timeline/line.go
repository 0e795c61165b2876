package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/observe"
)

// Path returns the usual path of an output's timeline: its name with .run.jsonl in place of
// .jsonl, or after any other ending.
func Path(output string) string {
	return journal.Beside(output, ".run.jsonl")
}

// Bounds of a line, in bytes. A longer line is not written.
const (
	maxStart    = 4 << 10 // a longer line leaves out its settings
	maxSummary  = 4 << 10
	maxFailures = 16 << 10 // a longer line leaves out the rarest
	// maxProgress is many times the length of the thirty-two lanes of a picture.
	maxProgress = 128 << 10
	// maxLine is longer than any line of ours.
	maxLine = 256 << 10
)

// version is that of the file. A file of another version belongs to another headrace: it is
// left alone.
const version = 1

// mark begins every timeline. Standard error of --progress json begins otherwise.
const mark = `{"event":"start","headrace_timeline":`

// kind is the kind of a line.
type kind int

const (
	unknown kind = iota
	start
	sample
	failures
	summary
	progress
)

// beginnings lists how the lines begin, by kind.
var beginnings = [...]string{
	start: mark, sample: `{"event":"sample",`, failures: `{"event":"failures",`,
	summary: `{"event":"summary",`, progress: `{"event":"progress",`,
}

// parsed holds the part of a line that this package reads.
type parsed struct {
	kind
	head     head            // of a start
	sample   *observe.Sample // of a sample
	progress *event.Progress // of a progress
	exit     *int            // of a summary; nil: it has no code
}

// parse reads a whole line, without its line feed. Its kind is unknown if it is not one of
// ours, or was not written to its end.
func parse(line []byte) (p parsed) {
	for k := start; k <= progress; k++ {
		if bytes.HasPrefix(line, []byte(beginnings[k])) && p.read(k, line) == nil {
			p.kind = k
		}
	}
	return p
}

func (p *parsed) read(k kind, line []byte) (err error) {
	switch k {
	case start:
		p.head, err = parseHead(line)
	case sample:
		p.sample, err = decodeSample(line)
	case progress:
		p.progress = new(event.Progress)
		err = json.Unmarshal(line, p.progress)
	case summary:
		var s struct {
			ExitCode *int `json:"exit_code"`
		}
		err = json.Unmarshal(line, &s)
		p.exit = s.ExitCode
	default:
		if !json.Valid(line) {
			err = strconv.ErrSyntax
		}
	}
	return err
}

// opening begins all of them.
const opening = `{"event":"`

// isTorn reports whether a line that does not parse may be what a killed process left of one of
// ours. That is its beginning, or the beginning of a new line followed by what stood there
// before. So many whole lines do not begin alike by chance, except JSON of another name.
func isTorn(line []byte, whole bool) bool {
	if !whole && strings.HasPrefix(opening, string(line)) {
		return true
	}
	for _, b := range beginnings[start:] {
		common := commonLength(line, b)
		if common == len(b) || common == len(line) && !whole || common >= len(opening) && !json.Valid(line) {
			return true
		}
		for _, before := range beginnings[start:] {
			if common >= len(opening) && common < len(before) && len(line) >= len(before) && commonLength(line[common:], before[common:]) == len(before)-common {
				return true
			}
		}
	}
	return false
}

func commonLength(line []byte, with string) int {
	n := 0
	for n < min(len(line), len(with)) && line[n] == with[n] {
		n++
	}
	return n
}

// head is the beginning of the line that begins a run, which this package writes itself; the
// caller gives the rest.
type head struct {
	span int    // seconds of a sample, when that run began or since the latest rewrite
	runs int    // the runs that the line stands for: older ones are merged
	rest []byte // what follows, up to the end of the line
}

var errOtherVersion = errors.New("another version of headrace has written it")

func (h head) line() []byte {
	return fmt.Appendf(nil, `%s%d,"span_s":%d,"runs":%d,%s`, mark, version, h.span, h.runs, h.rest)
}

// parseHead reads a line that the method line has written.
func parseHead(line []byte) (h head, err error) {
	bad := errors.New("it is not the start of a run")
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	if !ok || !json.Valid(line) {
		return h, bad
	}
	v, rest, err := number(rest, "")
	if err == nil && v != version {
		return h, errOtherVersion
	}
	if err == nil {
		h.span, rest, err = number(rest, `"span_s":`)
	}
	if err == nil {
		h.runs, rest, err = number(rest, `"runs":`)
	}
	if h.rest = rest; err != nil || h.span < 1 || h.span > maxSpan || h.runs < 1 || h.runs > maxRuns {
		return h, bad
	}
	return h, nil
}

// number reads a name, a number and a comma.
func number(text []byte, name string) (n int, rest []byte, err error) {
	text, ok := bytes.CutPrefix(text, []byte(name))
	digits, rest, more := bytes.Cut(text, []byte(","))
	if !ok || !more {
		return 0, nil, strconv.ErrSyntax
	}
	n, err = strconv.Atoi(string(digits))
	return n, rest, err
}

const (
	maxSpan = 1 << 30 // seconds: thirty-four years
	maxRuns = 1 << 30 // more than one a second for all that time
)

// newHead returns the beginning of a run. V marshals to an object that begins with
// "event":"start". If it is nil or too long, the line only says when the run began.
func newHead(v any, at string, span int) (head, error) {
	short := fmt.Appendf(nil, `"at":%q}`, at)
	if v == nil {
		return head{span, 1, short}, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return head{}, err
	}
	rest, ok := bytes.CutPrefix(text, []byte(`{"event":"start",`))
	if !ok {
		return head{}, errors.New("a start that is none")
	}
	if len(rest) > maxStart {
		rest = short
	}
	return head{span, 1, printable.JSON(rest)}, nil
}
