package prompts

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider/rawjson"
)

// BytesPerItem bounds the reader's memory for each item: 6 bytes, the room to grow in, and
// a bit. With it the reader detects an id used twice, and numbers equal lines without an
// id. It is the mean of many; a fixed 600 KB come on top.
const BytesPerItem = 7.5

// idWidth stores 62 bits of a hash: among ten million ids two different ones are taken for
// one with a chance of 10⁻⁵. The hash has another seed in each process, so that another try
// tells them apart.
const idWidth = 6

// NamedIDs is the number of ids that the reader remembers with their line, so that a
// complaint names both lines. They are the first ids of the input and take 200 KB.
// FirstLines finds the lines of the others.
const NamedIDs = 1 << 12

// idSet knows which ids are taken.
type idSet struct {
	hash           keys.Hasher
	given          keys.Set
	firstLines     map[keys.Sum]int // the lines of the first ids
	generatedLines lines.Set        // the lines that gave no id, and so have their LineID
}

func newIDSet() *idSet {
	return &idSet{
		hash:       keys.NewHasher(),
		given:      keys.Set{Width: idWidth},
		firstLines: make(map[keys.Sum]int),
	}
}

// addGiven records that line gave id. If the id is taken, it changes nothing and returns the line that has it, 0 if
// that is not remembered.
func (s *idSet) addGiven(id string, line int) (by int, taken bool) {
	if n, ok := lineOfID(id); ok && s.generatedLines.Has(n) {
		return n, true
	}
	h := s.hash.Text(id)
	if !s.given.Add(h) {
		return s.firstLines[h], true
	}
	if len(s.firstLines) < NamedIDs {
		s.firstLines[h] = line
	}
	return 0, false
}

// addGenerated records that line gave no id and gets id, its LineID. If that is taken, it returns the line that has
// it, 0 if that is not remembered.
func (s *idSet) addGenerated(id string, line int) (by int, taken bool) {
	if s.given.Len() > 0 {
		if h := s.hash.Text(id); s.given.Has(h) {
			return s.firstLines[h], true
		}
	}
	s.generatedLines.Add(line)
	return 0, false
}

// lineOfID is the inverse of LineID. It returns false if id is not the LineID of any line.
func lineOfID(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, "line-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && LineID(n) == id
}

// tally counts how often the same was asked, in a table of what was asked at least n times.
// It keeps 6 bytes for each time, however the times are spread.
type tally struct{ seen keys.Set }

// count counts sum, and returns how often it was counted before.
func (t *tally) count(sum keys.Sum) int {
	if t.seen.Add(nth(sum, 0)) {
		return 0 // the usual case
	}
	atLeast, below := 1, 2 // asked at least low times, and (in the end) less than high
	for t.seen.Has(nth(sum, below-1)) {
		atLeast, below = below, 2*below
	}
	for atLeast+1 < below {
		if mid := (atLeast + below) / 2; t.seen.Has(nth(sum, mid-1)) {
			atLeast = mid
		} else {
			below = mid
		}
	}
	t.seen.Add(nth(sum, atLeast))
	return atLeast
}

// nth returns another hash of sum for each n: odd multipliers mix all its bits.
func nth(sum keys.Sum, n int) keys.Sum {
	high, low := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
	binary.BigEndian.PutUint64(sum[:8], high+uint64(n)*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(sum[8:], low^uint64(n)*0xC2B2AE3D27D4EB4F)
	return sum
}

// identify completes the parts that only this request has: id and key.
func (r *Reader) identify(req *Request) *LineError {
	req.Line = r.inputLine()
	if r.cfg.More != nil {
		req.File, req.FileLine = r.cfg.Name, r.first
	}
	r.keyAndID = r.keyAndID[:0]
	switch {
	case !r.cfg.NoKeys:
		sum := r.key(req)
		r.keyAndID = hex.AppendEncode(r.keyAndID, sum[:])
	case r.cfg.Note != nil && !req.HasID:
		r.key(req) // this counts it
	}
	keyLength := len(r.keyAndID)
	if req.HasID {
		r.keyAndID = append(r.keyAndID, r.id...)
	} else {
		r.keyAndID = appendLineID(r.keyAndID, req.Line)
	}
	both := string(r.keyAndID) // one allocation for two strings that live as long
	req.Key, req.ID = both[:keyLength], both[keyLength:]
	return r.claimID(req)
}

// key returns the key of a request that is complete except for its id as a string.
func (r *Reader) key(req *Request) keys.Sum {
	if req.HasID {
		return r.keys.Given(req.keyEndpoint(), req.Body, r.id)
	}
	if mark, whole := r.mark(); !whole {
		return r.keys.Nth(req.keyEndpoint(), req.Body, mark.Nth)
	}
	first := r.keys.Nth(req.keyEndpoint(), req.Body, 0)
	if r.currentMark.Nth = r.askedBefore.count(first); r.currentMark.Nth > 0 {
		return r.keys.Nth(req.keyEndpoint(), req.Body, r.currentMark.Nth)
	}
	return first
}

// badKey returns the key of a line that is not a request: made of its text, and of how many
// lines like it came before.
func (r *Reader) badKey(text []byte) string {
	first := r.keys.Bad(text)
	mark, whole := r.mark()
	if whole {
		mark.Nth = r.badBefore.count(first)
		r.currentMark.Nth = mark.Nth
	}
	return nth(first, mark.Nth).String()
}

// claimID records the id of a request. It returns a complaint if another line already has it.
func (r *Reader) claimID(req *Request) *LineError {
	mark, whole := r.mark()
	switch {
	case !whole:
	case r.ids == nil:
		return nil
	case req.HasID:
		mark.By, mark.Taken = r.ids.addGiven(req.ID, req.Line)
	default:
		mark.By, mark.Taken = r.ids.addGenerated(req.ID, req.Line)
	}
	if !mark.Taken {
		return nil
	}
	if whole {
		r.currentMark.Taken, r.currentMark.By = true, mark.By
		r.inFile(&mark)
	}
	c := &LineError{Err: ErrDuplicateID, id: req.ID, generatedID: !req.HasID}
	c.setFirstUse(mark)
	return c
}

// setFirstUse completes the complaint about an id used twice by the line that had the id before, if it is known.
func (e *LineError) setFirstUse(m Mark) {
	where := m.where()
	e.firstLine = m.By
	if e.generatedID {
		e.Advice = "give this line its own id"
		e.Reason = fmt.Sprintf("the line has no id, and its default, %q, is already used on %s", e.id, where)
		return
	}
	e.Advice = "give each line its own id"
	e.Reason = fmt.Sprintf("custom_id %q is already used on %s", lines.Clip(e.id), where)
}

// FirstLines reads the input again, from its beginning and with the same settings. Each
// complaint about an id used twice then names the line that had it first. A Reader knows
// that by itself only for the first 4,096 ids. FirstLines reads no further than it must,
// and nothing if there is no such complaint.
func FirstLines(in io.Reader, cfg Config, bad []*LineError) error {
	wanted := make(map[string][]*LineError)
	for _, e := range bad {
		if errors.Is(e, ErrDuplicateID) && e.firstLine == 0 {
			wanted[e.id] = append(wanted[e.id], e)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	cfg.Checked, cfg.Limit = true, 0 // no complaint about them again
	cfg.Takes = nil                  // a line that is refused has its id all the same
	cfg.Passing, cfg.NoKeys = true, true
	for req, err := range NewReader(in, cfg).All() {
		var complaint *LineError
		if err != nil && !errors.As(err, &complaint) {
			return err
		}
		for _, e := range wanted[req.ID] {
			e.setFirstUse(req.mark(e.File))
		}
		if delete(wanted, req.ID); len(wanted) == 0 {
			break
		}
	}
	return nil
}

// idIn returns the id of a line that is not a request, "" if it is unreadable. The line may
// have any form.
func (r *Reader) idIn(text []byte) string {
	values := map[string][]byte{}
	switch {
	case r.rows != nil && len(r.rows.cells) == len(r.columns) && r.rows.fault == nil:
		for i, name := range r.columns {
			values[name] = rawjson.AppendString(nil, r.rows.cells[i])
		}
	case r.cfg.Format == FormatJSONL && text[0] == '{' && r.line.Parse(text):
		for _, m := range r.line.Members {
			values[string(m.Name)] = m.Value
		}
	}
	for _, name := range [...]struct{ id, form string }{{"custom_id", ""}, {"id", ""}, {"key", "request"}, {"recordId", "modelInput"}} {
		if rawjson.IsNull(values[name.id]) || name.form != "" && values[name.form] == nil {
			continue
		}
		if id, c := readID(name.id, values[name.id]); c == nil && utf8.Valid(id) {
			return string(id)
		}
	}
	return ""
}

// Key returns the key that ties a result to its question: 32 hex digits made of the
// endpoint, the body in canonical form, and the id. The order of a body's keys and the
// white space in it do not count. Numbers and strings count as they are written: 1 and 1.0
// differ, and so do "é" and "\u00e9". To take two questions for one would lose an answer,
// and the reverse only buys one again.
//
// The bodies of GenerateContent and Converse do not name the model: their keys have it before
// the endpoint, as a JSON string: `"gemini-3-flash":generateContent`.
//
// body must be valid JSON. For a line without an id of its own, the number of lines like it
// before it replaces the id (see its Request.Key). So it keeps its key when lines above it
// come and go.
func Key(endpoint string, body []byte, id string) string {
	var of keys.Maker
	return of.Given(endpoint, body, []byte(id)).String()
}

// LineID returns the id of a line that gives none: line-000042 for line 42.
func LineID(line int) string { return string(appendLineID(nil, line)) }

// appendLineID appends the LineID of a line.
func appendLineID(dst []byte, line int) []byte {
	dst = append(dst, "line-"...)
	for least := 100_000; line < least && least > 1; least /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(line), 10)
}
