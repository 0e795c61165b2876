package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// Path returns the usual path of an output's timeline: its name with .run.jsonl in place of
// .jsonl, or after any other ending.
func Path(output string) string {
	return journal.Beside(output, ".run.jsonl")
}

// Bounds of a line, in bytes. A longer line is not written.
const (
	maxStart    = 4 << 10  // a longer line leaves out its settings
	maxSummary  = 32 << 10 // with MostStopped lanes that have stopped
	maxFailures = 16 << 10 // a longer line leaves out the rarest
	maxChanged  = 1 << 10
	// maxProgress is many times the length of the thirty-two lanes of a snapshot.
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
	changed
	progress
)

// beginnings lists how the lines begin, by kind.
var beginnings = [...]string{
	start: mark, sample: `{"event":"sample",`, failures: `{"event":"failures",`,
	summary: `{"event":"summary",`, changed: `{"event":"changed",`, progress: `{"event":"progress",`,
}

// parsed holds the part of a line that this package reads.
type parsed struct {
	kind
	head     head                // of a start
	sample   *observe.Sample     // of a sample
	progress *event.Progress     // of a progress
	exit     *int                // of a summary; nil: it has no code
	stopped  []event.StoppedLane // of a summary
}

// parse reads a whole line, without its line feed. Its kind is unknown if it is not ours, or was not written to its
// end.
func parse(line []byte) (p parsed) {
	for k := start; k <= progress; k++ {
		if bytes.HasPrefix(line, []byte(beginnings[k])) && p.read(k, line) == nil {
			p.kind = k
		}
	}
	return p
}

// read reads a line of kind k. An error says that the line is not ours or not whole. It only checks the kinds whose
// contents are not needed here.
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
			ExitCode *int                `json:"exit_code"`
			Stopped  []event.StoppedLane `json:"stopped_lanes"`
		}
		err = json.Unmarshal(line, &s)
		p.exit, p.stopped = s.ExitCode, s.Stopped
	default:
		if !json.Valid(line) {
			err = strconv.ErrSyntax
		}
	}
	return err
}

// opening begins all of them.
const opening = `{"event":"`

// isTorn reports whether a line that does not parse may be the rest of one of ours after a kill. That is the
// beginning of a line, or of a new line written over an old one. So long a common beginning does not come by chance.
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

// commonLength returns the number of bytes that both begin with.
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
	v, rest, err := readNumber(rest, "")
	if err == nil && v != version {
		return h, errOtherVersion
	}
	if err == nil {
		h.span, rest, err = readNumber(rest, `"span_s":`)
	}
	if err == nil {
		h.runs, rest, err = readNumber(rest, `"runs":`)
	}
	if h.rest = rest; err != nil || h.span < 1 || h.span > maxSpan || h.runs < 1 || h.runs > maxRuns {
		return h, bad
	}
	return h, nil
}

// readNumber reads a name, a number and a comma, and returns what follows.
func readNumber(text []byte, name string) (n int, rest []byte, err error) {
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

// newHead returns the beginning of a run. v must marshal to an object that begins with "event":"start". If v is nil
// or too long, the line holds only the time.
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

// timeLayout reads what [event.Stamp] has written.
const timeLayout = time.RFC3339Nano

// sampleLine is a sample as the file has it. A number that is not known is null, or absent
// if it is money.
type sampleLine struct {
	Event        string               `json:"event"`
	At           string               `json:"at"` // its end
	ElapsedS     float64              `json:"elapsed_s"`
	SpanS        float64              `json:"span_s"`
	Answered     int                  `json:"answered"`
	Failed       int                  `json:"failed"`
	Calls        int                  `json:"calls"`
	Throttled    int                  `json:"throttled"`
	Broke        int                  `json:"broke"`
	InputTokens  int64                `json:"input_tokens"`
	OutputTokens int64                `json:"output_tokens"`
	CachedTokens int64                `json:"cached_tokens"`
	CostUSD      *float64             `json:"cost_usd,omitempty"` // absent: nothing has a price
	Unpriced     int                  `json:"unpriced,omitempty"` // items without a price
	InFlight     float64              `json:"in_flight"`
	InFlightMost int                  `json:"in_flight_max"`
	Waiting      float64              `json:"waiting"`
	Parked       float64              `json:"parked"`
	Delayed      float64              `json:"delayed"`
	Allowed      *float64             `json:"allowed_per_second"`
	AllowedS     float64              `json:"allowed_s,omitempty"` // seconds for which that is known; absent: the whole span
	BoundS       map[string]float64   `json:"bound_s"`
	Latency      [][2]int             `json:"latency"` // index of a bucket, and its count
	Lanes        []observe.LaneSample `json:"lanes"`
}

// maxName bounds the name of a lane, in runes: it comes from a model's name.
const maxName = 100

// otherBound is the word for bounds that are not known here. A run never has BoundNone, so only a line of a later version
// brings time under it.
const otherBound = "other"

// encodeSample returns the line of a sample, with its line feed. It rounds numbers, and leaves out those that are not
// known.
func encodeSample(s *observe.Sample) []byte {
	l := sampleLine{
		Event: "sample", At: event.Stamp(s.At), ElapsedS: round(s.Elapsed, 1e3), SpanS: round(s.Span, 1e6),
		Answered: s.Answered, Failed: s.Failed, Calls: s.Calls, Throttled: s.Throttled, Broke: s.Broke,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens, Unpriced: s.Unpriced,
		InFlight: round(s.InFlight, 1e3), InFlightMost: s.InFlightMost, Waiting: round(s.Waiting, 1e3),
		Parked: round(s.Parked, 1e3), Delayed: round(s.Delayed, 1e3),
		BoundS: map[string]float64{}, Latency: make([][2]int, 0, len(s.Latency)), Lanes: []observe.LaneSample{},
	}
	if s.USD > 0 || s.Unpriced == 0 {
		usd := round(s.USD, 1e9)
		l.CostUSD = &usd
	}
	if s.Allowed > 0 && !math.IsInf(s.Allowed, 0) {
		allowed := round(s.Allowed, 1e3)
		l.Allowed = &allowed
		if s.AllowedSpan < s.Span {
			l.AllowedS = round(s.AllowedSpan, 1e6)
		}
	}
	for b, d := range s.Bounds {
		if seconds := round(d.Seconds(), 1e6); seconds > 0 {
			l.BoundS[cmp.Or(limiter.Bound(b).String(), otherBound)] = seconds
		}
	}
	for _, b := range s.Latency {
		l.Latency = append(l.Latency, [2]int{b.Number, b.Count})
	}
	for _, lane := range s.Lanes[:min(len(s.Lanes), observe.LanesInSample)] {
		limits := make(map[string]float64, len(lane.Limits))
		for limit, perSecond := range lane.Limits {
			if !math.IsInf(perSecond, 0) {
				limits[limit] = round(perSecond, 1e3)
			}
		}
		lane.Name, lane.Limits = words.Clip(lane.Name, maxName), limits
		l.Lanes = append(l.Lanes, lane)
	}
	text, _ := json.Marshal(l) // all rounded numbers are finite
	return append(printable.JSON(text), '\n')
}

// decodeSample reads a line that encodeSample has written, and refuses values that no sample can have.
func decodeSample(line []byte) (*observe.Sample, error) {
	var l sampleLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	at, err := time.Parse(timeLayout, l.At)
	if err != nil {
		return nil, err
	}
	s := &observe.Sample{
		At: at, Elapsed: l.ElapsedS, Span: l.SpanS,
		Answered: l.Answered, Failed: l.Failed, Calls: l.Calls, Throttled: l.Throttled, Broke: l.Broke,
		InputTokens: l.InputTokens, OutputTokens: l.OutputTokens, CachedTokens: l.CachedTokens, Unpriced: l.Unpriced,
		InFlight: l.InFlight, InFlightMost: l.InFlightMost, Waiting: l.Waiting, Parked: l.Parked, Delayed: l.Delayed,
	}
	if l.CostUSD != nil {
		s.USD = *l.CostUSD
	}
	if l.Allowed != nil {
		s.Allowed, s.AllowedSpan = *l.Allowed, l.AllowedS
		if l.AllowedS == 0 {
			s.AllowedSpan = l.SpanS
		}
	}
	if l.SpanS < 0 || l.SpanS > maxSpan || l.Answered < 0 || l.Failed < 0 || len(l.Lanes) > observe.LanesInSample {
		return nil, errNoSample
	}
	for word, seconds := range l.BoundS {
		if seconds < 0 || seconds > maxSpan {
			return nil, errNoSample
		}
		if by := int(limiter.ParseBound(word)); by < len(s.Bounds) { // the time of a bound that is not known here counts as that of none
			s.Bounds[by] += time.Duration(math.Round(seconds * float64(time.Second)))
		}
	}
	for _, b := range l.Latency {
		s.Latency = append(s.Latency, observe.Bucket{Number: b[0], Count: b[1]})
	}
	s.Lanes = append(s.Lanes, l.Lanes...)
	return s, nil
}

var errNoSample = errors.New("it is not a sample of a run")

// round rounds to a fraction of one; a value that is no number becomes 0.
func round(x, parts float64) float64 {
	if r := math.Round(x*parts) / parts; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return 0
}

// failuresLine lists what failed in a run so far.
type failuresLine struct {
	Event    string            `json:"event"`
	At       string            `json:"at"`
	Failures []observe.Failure `json:"failures"`
}

// Bounds of a failure, in runes, and of its examples.
const (
	maxMessage  = 200
	maxWord     = 64 // of a kind, a code or an id
	maxExamples = 3
)

// encodeFailures returns the line of failures, with its line feed. It leaves out the rarest failures if the line
// would be too long.
func encodeFailures(list []observe.Failure, at time.Time) []byte {
	l := failuresLine{Event: "failures", At: event.Stamp(at), Failures: []observe.Failure{}}
	size := 0
	for _, f := range list {
		one := observe.Failure{
			Kind: words.Clip(f.Kind, maxWord), Code: words.Clip(f.Code, maxWord), Message: words.Clip(f.Message, maxMessage), Count: f.Count, Examples: []observe.Example{},
		}
		for _, e := range f.Examples[:min(len(f.Examples), maxExamples)] {
			one.Examples = append(one.Examples, observe.Example{Line: e.Line, ID: words.Clip(e.ID, maxWord), Message: words.Clip(e.Message, maxMessage)})
		}
		text, _ := json.Marshal(one) // text and numbers cannot fail
		if size += len(text) + 1; size > maxFailures {
			break
		}
		l.Failures = append(l.Failures, one)
	}
	text, _ := json.Marshal(l) // likewise
	return append(printable.JSON(text), '\n')
}
