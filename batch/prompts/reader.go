package prompts

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"unicode/utf8"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// DefaultMaxLine is the longest line that a Reader accepts, in bytes: 64 MiB, several times
// what any provider accepts as one request, pictures included.
const DefaultMaxLine = 64 << 20

// Config says how to read. The zero value is usable.
type Config struct {
	Name            string  // names the input in complaints; empty means "input"
	DefaultModel    string  // for lines that name none; empty means that each must
	DefaultEndpoint string  // for lines that name none; empty means ChatCompletions
	System          string  // system message for prompts without one; empty means none
	MaxLine         int     // longest line in bytes; 0 means DefaultMaxLine
	Params          []Param // sent with every line that does not set them; each name once

	// Checked says that the same input was found to have no id used twice: the reader
	// does not remember the ids again.
	Checked bool

	// Passing says that the caller is done with a request before it asks for the next.
	// Its Body and Metadata then lie in the reader's own memory and are overwritten.
	Passing bool
	// NoKeys leaves the Key of requests empty, for callers that only check whether the
	// lines are good. A LineError has its key all the same.
	NoKeys bool

	Format   Format
	Template *template.Template // makes prompts from fields, see ParseTemplate; nil for none
	Limit    int                // maximum number of requests; 0 means all
	// Serves lists the endpoints that the provider has. Lines for others are refused.
	// nil means those of OpenAI, which Endpoints lists.
	Serves []string
	// Plain says that the input is not packed, even if it begins as if it were.
	Plain bool
	// Section says where in a longer input this one stands, from its first byte; nil: it is
	// whole.
	Section *Section
	// More opens the next file of the same input, once the current one is read to its
	// end; io.EOF says that there is none. Any other error ends the input and should name
	// the file. Nil: the input is one file. It does not go with Section.
	More func() (File, error)
	// Note receives the Mark of each line that is not the first of its kind, before the line is given. Its By
	// counts the lines of all files, and In is empty. It does not go with Section. Nil receives nothing.
	Note func(line int, m Mark)
	// The reader calls Takes with each finished request, to learn whether the provider can
	// be asked it. Takes may use the request until it returns. An error that is a
	// *provider.Untranslatable makes the line one of kind ErrUntranslatable, any other one
	// of ErrUnsupported. nil takes everything.
	Takes func(*Request) error
}

// withDefaults fills in the fields whose zero value stands for another one.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "input"
	}
	if c.DefaultEndpoint == "" {
		c.DefaultEndpoint = ChatCompletions
	}
	if c.Serves == nil {
		c.Serves = endpoints
	}
	if c.MaxLine == 0 {
		c.MaxLine = DefaultMaxLine
	}
	return c
}

// Reader reads requests from a prompt file. It belongs to one goroutine.
type Reader struct {
	cfg         Config // its Name and Format are those of the current file
	lines       *lines.Reader
	rows        *rows    // for a CSV, else nil
	first       int      // the first line of the current item
	filesBefore []fileAt // the files read to their end
	endErr      error    // why the input cannot be read further, io.EOF included

	ids          *idSet // nil if the ids are known to be good
	askedBefore  tally  // of lines without an id
	keys         keys.Maker
	line         rawjson.Parser   // parses the current line
	id           []byte           // the id that it gives
	body         []rawjson.Member // of its body
	addedMembers []byte           // put before the members of its body
	bodyRoom     []byte           // where bodies are made, if requests are Passing
	keyAndID     []byte           // where its key and id are joined
	models       map[string]string

	offered     Request  // the copy that Takes gets
	columns     []string // of a CSV
	given       int      // requests
	currentMark Mark     // of the current line, for Note
	digest      Digest   // of the lines and rows read
	badBefore   tally    // lines that are not requests
}

// NewReader returns a reader of in, which may be packed by gzip or zstd unless it is Plain
// or a section. It reads ahead no more than a buffer and a line.
func NewReader(in io.Reader, cfg Config) *Reader {
	cfg = cfg.withDefaults()
	r := &Reader{
		cfg:         cfg,
		askedBefore: tally{keys.Set{Width: idWidth}},
		badBefore:   tally{keys.Set{Width: idWidth}},
		models:      make(map[string]string),
	}
	r.open(in)
	if cfg.Section != nil {
		r.lines.After(max(cfg.Section.FirstLine, 1) - 1) // the place before its first line
		r.columns = cfg.Section.Columns
	} else if !cfg.Checked {
		r.ids = newIDSet()
	}
	return r
}

// open starts at the first line of a file.
func (r *Reader) open(in io.Reader) {
	if r.cfg.Section == nil && !r.cfg.Plain {
		in = Unpack(in)
	}
	r.lines, r.rows, r.columns = lines.New(in, r.cfg.MaxLine), nil, nil
	if r.cfg.Format == FormatCSV {
		r.rows = newRows(r.lines, r.cfg.MaxLine)
	}
}

// Line returns the number of the line read last, from 1; 0 before the first. In a section
// it counts from the beginning of the file, and with several files over all of them.
func (r *Reader) Line() int { return r.linesBefore() + r.lines.Line() }

// Next returns the next request, skipping blank lines. The error is
//   - io.EOF at the end of the input;
//   - a *LineError when the line is not a request: go on with Next;
//   - anything else when the input cannot be read, again and again from then on.
//     Next does not return a line torn by that.
func (r *Reader) Next() (Request, error) {
	for r.endErr == nil {
		if r.cfg.Limit > 0 && r.given == r.cfg.Limit {
			r.endErr = io.EOF
			break
		}
		text, err := r.text()
		if lines.AtEnd(err) && r.cfg.More != nil {
			r.endErr = r.nextFile()
			continue
		}
		if err != nil {
			if errors.Is(err, ErrTooLong) {
				r.digest.add(nil)
				return Request{}, r.tooLong()
			}
			r.endErr = r.readError(err)
			break
		}
		if len(text) > 0 {
			r.digest.add(text)
			return r.request(text)
		}
	}
	return Request{}, r.endErr
}

// Digest distinguishes inputs within one process by the text read so far. White space
// around lines and the text of lines that are too long do not count.
type Digest uint64

// digestSeed is random in each process: nobody can write two inputs that share a digest.
var digestSeed = maphash.MakeSeed()

// add adds one more line. The odd factor makes the order of lines count.
func (d *Digest) add(text []byte) {
	*d = *d*0x9E3779B97F4A7C15 + Digest(maphash.Bytes(digestSeed, text))
}

// Digest returns the digest of the text read so far, the header of a CSV included.
func (r *Reader) Digest() Digest { return r.digest }

// tooLong returns the complaint about a line or row that is too long.
func (r *Reader) tooLong() error {
	what := "line"
	if last := r.lines.Line(); last > r.first {
		what = fmt.Sprintf("row (its quotes extend it to line %d)", last)
	}
	r.currentMark = Mark{}
	c := newLineError(ErrTooLong, "split or remove it", "%s longer than %d bytes", what, r.cfg.MaxLine).withKey(r)
	r.note()
	return r.place(c)
}

// text returns the text of one item: a line, or a row, which may have several lines.
func (r *Reader) text() ([]byte, error) {
	if r.rows != nil {
		return r.row()
	}
	text, err := r.lines.Next()
	r.first = r.lines.Line()
	return text, err
}

// readError returns err with the name of the input and the place, unless it needs neither.
func (r *Reader) readError(err error) error {
	if lines.AtEnd(err) || errors.Is(err, ErrHeader) {
		return err
	}
	return fmt.Errorf("prompts: read %s after line %d: %w", r.cfg.Name, r.lines.Line(), err)
}

// All ranges over the results of Next, up to the end of the input or the first error that
// is not a *LineError. It yields that error last.
func (r *Reader) All() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for {
			req, err := r.Next()
			if lines.AtEnd(err) {
				return
			}
			if goOn := yield(req, err); !goOn || err != nil && !isLineError(err) {
				return
			}
		}
	}
}

func isLineError(err error) bool {
	var bad *LineError
	return errors.As(err, &bad)
}

// place adds file and line to a complaint.
func (r *Reader) place(c *LineError) error {
	c.File, c.Line, c.linesAbove = r.cfg.Name, r.inputLine(), r.linesAbove()
	return c
}

// request parses one line. text lies in the read buffer, so what the request keeps of it is
// copied on the way.
func (r *Reader) request(text []byte) (req Request, err error) {
	r.currentMark = Mark{}
	fault := r.parseLine(&req, text)
	if fault == nil {
		fault = r.identify(&req)
	}
	if fault == nil && r.cfg.Takes != nil {
		fault = r.askTakes(&req)
	}
	if fault != nil && fault.Request == nil {
		fault.key, fault.ID = r.badKey(text), r.idIn(text)
	}
	r.note()
	if fault != nil {
		return Request{}, r.place(fault)
	}
	r.given++
	return req, nil
}

// note passes to Note what the reader found out about the current line.
func (r *Reader) note() {
	if r.cfg.Note != nil && r.currentMark != (Mark{}) {
		r.cfg.Note(r.inputLine(), r.currentMark)
	}
}

// parseLine makes a request of a line, whatever its format. A line that is not JSON, or that a template reads, is
// first checked and then converted to JSON.
func (r *Reader) parseLine(req *Request, text []byte) (fault *LineError) {
	plain := r.cfg.Format == FormatJSONL // the line itself is JSON
	switch {
	case plain:
		fault = r.checkJSON(text)
	case r.rows != nil:
		fault = r.rows.check()
	default:
		fault = checkText(text)
	}
	if fault == nil && (!plain || r.cfg.Template != nil) {
		if text, fault = r.convert(text); fault == nil {
			r.line.Parse(text) // for its members: a line made here is good
		}
	}
	if fault != nil {
		return fault
	}
	if fault = r.recognise(req, text); r.cfg.Template != nil {
		req.Form = FormTemplate
	}
	return fault
}

// askTakes asks the caller's Takes about a request. It passes a copy: otherwise each request of each reader would
// be an allocation.
func (r *Reader) askTakes(req *Request) *LineError {
	r.offered = *req
	err := r.cfg.Takes(&r.offered)
	r.offered = Request{} // its body is the caller's
	if err == nil {
		return nil
	}
	var u *provider.Untranslatable
	if errors.As(err, &u) {
		return r.untranslatable(req, u)
	}
	return newLineError(ErrUnsupported, adviceElsewhere, "%s", oneLine(lines.ClipTo(err.Error(), maxShownReason)))
}

// checkText refuses text that no line may have, cheapest check first.
func checkText(text []byte) *LineError {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return newLineError(ErrText, "save the file as UTF-8 text", "NUL byte at byte %d", i+1)
	}
	if !utf8.Valid(text) {
		return newLineError(ErrText, "save the file as UTF-8 text", "invalid UTF-8 at byte %d", invalidAt(text))
	}
	return nil
}

// checkJSON refuses text that no line of JSON may have, and finds the members of a good
// line. A fault of the text comes before one of the JSON. A line that is JSON and all ASCII has
// none: its text needs no look.
func (r *Reader) checkJSON(text []byte) *LineError {
	good := r.line.Parse(text)
	if !good || !r.line.ASCII() {
		if c := checkText(text); c != nil {
			return c
		}
	}
	if !good {
		return newLineError(ErrNotJSON, r.adviceFor(text), "not JSON: %s", r.line.SyntaxError(text))
	}
	if text[0] != '{' {
		return newLineError(ErrShape, r.adviceFor(text), "%s, not an object", rawjson.KindOf(text))
	}
	return nil
}
