package prompts

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider/rawjson"
)

// ErrHeader says that the first row of a CSV does not name its columns.
var ErrHeader = errors.New("the header cannot be used")

// rows reads the rows of a CSV, by the rules of encoding/csv. It takes lines one by one,
// and none before it needs it. So the lines of a row are known, and a quote that is never
// closed costs no more memory than a line may.
type rows struct {
	lines *lines.Reader
	csv   *csv.Reader
	max   int // bytes of a row

	text     []byte   // the lines of the current row
	unparsed []byte   // the part that the parser has not taken yet
	cells    []string // valid until the next row
	fault    error    // why the row has no cells: a *csv.ParseError
	first    int      // its first line, 0 before that is read
	readErr  error    // why there is no further line
}

func newRows(in *lines.Reader, longest int) *rows {
	t := &rows{lines: in, max: longest}
	t.renew()
	return t
}

// renew releases the memory of a long row.
func (t *rows) renew() {
	t.text = nil
	t.csv = csv.NewReader(t)
	t.csv.FieldsPerRecord = -1 // counted against the header, in our words
	t.csv.ReuseRecord = true
}

// next returns the text of one row, valid until the next call. It also sets the row's
// cells, or the reason why it has none. lines.ErrTooLong says that it is longer than a line
// may be.
func (t *rows) next() ([]byte, error) {
	if cap(t.text) > lines.KeepBuffer {
		t.renew()
	}
	t.text, t.unparsed, t.first = t.text[:0], nil, 0
	var (
		fault *csv.ParseError
		err   error
	)
	t.fault = nil
	if t.cells, err = t.csv.Read(); errors.As(err, &fault) {
		t.fault, err = fault, nil
	}
	return rawjson.Trim(t.text), err
}

// Read gives the parser at most the rest of one line.
func (t *rows) Read(p []byte) (int, error) {
	if len(t.unparsed) == 0 {
		if err := t.readLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.unparsed)
	t.unparsed = t.unparsed[n:]
	return n, nil
}

// readLine reads one more line of the row. Blank lines between rows belong to no row.
func (t *rows) readLine() error {
	for t.readErr == nil {
		line, whole, err := t.lines.Cut()
		if t.readErr = err; err != nil && !(lines.AtEnd(err) && len(line) > 0) {
			break
		}
		if t.lines.Line() == 1 {
			line = bytes.TrimPrefix(line, lines.ByteOrderMark)
		}
		if t.first == 0 && len(rawjson.Trim(line)) == 0 {
			continue
		}
		if t.first == 0 {
			t.first = t.lines.Line()
		}
		if !whole || len(t.text)+len(bytes.TrimRight(line, "\r\n")) > t.max {
			return lines.ErrTooLong
		}
		t.text = append(t.text, line...)
		t.unparsed = t.text[len(t.text)-len(line):]
		return nil
	}
	return t.readErr
}

// check refuses text that no row may have.
func (t *rows) check() *LineError {
	if c := checkText(t.text); c != nil {
		return c
	}
	var at *csv.ParseError
	if errors.As(t.fault, &at) {
		return t.newRowError(`write a cell that has quotes as "5"" disk", or remove the row`, "not a row of CSV: %v", at.Err)
	}
	return nil
}

// newRowError makes a complaint about the row, and names its lines if it has several. A quote that nothing closes
// may have made later rows part of this one.
func (t *rows) newRowError(advice, format string, args ...any) *LineError {
	c := newLineError(ErrShape, advice, format, args...)
	if last := t.lines.Line(); last > t.first {
		c.Reason += fmt.Sprintf(" (by its quotes, lines %d to %d are one row)", t.first, last)
	}
	return c
}

// row returns the text of one item of a CSV. A header that cannot be used ends the input.
func (r *Reader) row() ([]byte, error) {
	if r.columns == nil {
		if err := r.header(); err != nil {
			return nil, err
		}
	}
	text, err := r.rows.next()
	r.first = r.rows.first
	return text, err
}

// header reads the names of the columns.
func (r *Reader) header() error {
	text, err := r.rows.next()
	r.first = r.rows.first
	r.digest.add(text)
	var fault *LineError
	switch {
	case errors.Is(err, lines.ErrTooLong):
		fault = newLineError(ErrTooLong, "is it a CSV?", "line longer than %d bytes", r.cfg.MaxLine)
	case err != nil:
		return err
	default:
		fault = r.nameColumns()
	}
	if fault == nil {
		return nil
	}
	// It is not a LineError: what is behind it cannot be read.
	return fmt.Errorf("prompts: %s:%d: %w: %s: %s", r.cfg.Name, r.first, ErrHeader, fault.Reason, fault.Advice)
}

// nameColumns takes the cells of the current row as the names of the columns.
func (r *Reader) nameColumns() *LineError {
	if c := r.rows.check(); c != nil {
		return c
	}
	names := make([]string, len(r.rows.cells))
	for i, cell := range r.rows.cells {
		names[i] = strings.TrimSpace(cell)
	}
	switch {
	case slices.Contains(names, ""):
		return newLineError(ErrShape, "name it", "column %d has no name", slices.Index(names, "")+1)
	case len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names):
		return newLineError(ErrShape, "give each its own name", "two columns have one name")
	case r.cfg.Template == nil && !slices.Contains(names, "prompt"):
		return newLineError(ErrShape, adviceColumns(names), "no column is named prompt; %s", thereAre(names, "column"))
	}
	r.columns = names
	return nil
}

// adviceColumns returns the advice if no column is named prompt. A single column may really
// be several, separated by something else than commas.
func adviceColumns(names []string) string {
	switch {
	case len(names) > 1:
		return "rename one, or make prompts with a template"
	case strings.ContainsAny(names[0], ";\t|"):
		return "separate columns with commas"
	}
	return "rename it, or make prompts with a template"
}

// fromRow makes a prompt line from the current row. Columns named like a field or a
// parameter become that field or parameter, other columns become metadata, and empty cells
// are left out. A template gets every column.
func (r *Reader) fromRow() ([]byte, *LineError) {
	cells := r.rows.cells
	if len(cells) != len(r.columns) {
		return nil, r.rows.newRowError(adviceFix, "%s under %s", countOf(len(cells), "cell"), countOf(len(r.columns), "column"))
	}
	fields, metadata := make(map[string]any), make(map[string]any)
	for i, name := range r.columns {
		_, isParameter := parameters[name]
		switch {
		case r.cfg.Template != nil:
			fields[name] = cells[i]
		case cells[i] == "":
		case isParameter:
			value, c := parseValue(name, cells[i])
			if c != nil {
				return nil, c
			}
			fields[name] = value
		case slices.Contains(fieldColumns, name):
			fields[name] = cells[i]
		default:
			metadata[name] = cells[i]
		}
	}
	if len(metadata) > 0 {
		fields["metadata"] = metadata
	}
	return r.fromFields(fields)
}

// fieldColumns are the columns that mean the same as the fields of a prompt line.
var fieldColumns = []string{"custom_id", "id", "prompt", "system", "model"}

// Format says how an input holds its items. The zero value is a line of JSON for each.
type Format uint8

// The formats of an input.
const (
	FormatJSONL Format = iota // a JSON object on each line
	FormatText                // a prompt on each line
	FormatCSV                 // a row for each item, below a row of names
)

// convert turns a line into one of the JSON forms.
func (r *Reader) convert(text []byte) ([]byte, *LineError) {
	switch {
	case r.cfg.Format == FormatText:
		return r.fromFields(map[string]any{"prompt": string(text)})
	case r.cfg.Format == FormatCSV:
		return r.fromRow()
	case r.cfg.Template == nil:
		return text, nil
	}
	fields := make(map[string]any)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a number reads as it was written
	if err := decoder.Decode(&fields); err != nil {
		return nil, newLineError(ErrNotJSON, adviceFix, "not JSON: %v", err)
	}
	return r.fromFields(fields)
}

// fromFields makes a prompt line from fields, by the template if there is one. With a
// template all fields are data, except for the id and the documents of a rerank. Metadata
// that are an object come back with the result.
func (r *Reader) fromFields(fields map[string]any) ([]byte, *LineError) {
	line := fields
	if r.cfg.Template != nil {
		prompt := boundedBuffer{max: r.cfg.MaxLine}
		if err := r.cfg.Template.Execute(&prompt, fields); err != nil {
			return nil, r.templateFault(err, fields)
		}
		line = map[string]any{"prompt": prompt.String()}
		for _, name := range []string{"custom_id", "id"} {
			if value, there := fields[name]; there && (value != "" || r.cfg.Format != FormatCSV) {
				line[name] = value
			}
		}
		if documents, is := fields["documents"].([]any); is && r.cfg.DefaultEndpoint == Rerank {
			line["documents"] = documents
		}
		if metadata, is := fields["metadata"].(map[string]any); is {
			line["metadata"] = metadata
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a prompt goes out as it was written
	if err := encoder.Encode(line); err != nil {
		return nil, newLineError(ErrTemplate, adviceFix, "%v", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
