package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strconv"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider/rawjson"
)

// bufferSize is written at once, so that system calls cost little.
const bufferSize = 64 << 10

// A task is one export.
type task struct {
	flags   *flags
	output  string
	columns []column
	form    form
	input   *input // nil without --join

	row  row
	text []byte // rows that were not written yet

	fault                  error // of what was read or of --json, not of the file that is written
	rows, unjoined, unread int
}

// writeError is an error of what is written, not of what is read.
type writeError struct{ error }

// run adds the columns that only the files show, and writes the table to the file of the flags, else to out.
func (t *task) run(out io.Writer) (err error) {
	if len(t.flags.join) > 0 {
		if t.input, err = openInput(t.flags.join); err != nil {
			return fmt.Errorf("--join: %w", err)
		}
		defer t.input.close()
		t.columns = append(t.columns, t.input.fieldColumns()...)
	}
	if t.flags.json {
		more, err := t.answerColumns()
		if err != nil {
			return err
		}
		t.columns = append(t.columns, more...)
	}
	if t.flags.file != "" {
		return t.replace(t.flags.file)
	}
	return t.write(bufio.NewWriterSize(out, bufferSize))
}

// replace writes the table to a file, at once or not at all. It replaces only a file that begins as this table does.
func (t *task) replace(file string) error {
	head := t.form.head(nil, t.columns)
	if len(head) == 0 { // JSONL has no heading
		head = append(rawjson.AppendString([]byte("{"), t.columns[0].name), ':')
	}
	ours := disk.Marked(string(head))
	if err := disk.Inspect(file, ours); errors.Is(err, disk.ErrInTheWay) || err == nil && t.flags.format == "jsonl" && !t.hasSameNames(file) {
		return fmt.Errorf("--output: %s: it is in the way, and does not begin as this table does: move it away", file)
	}
	err := disk.Real().Unsynced().Replace(file, ours, t.write)
	var unwritten *writeError
	if err != nil && !errors.As(err, &unwritten) && t.fault == nil {
		err = &writeError{err}
	}
	return err
}

// hasSameNames reports whether the first line of a JSONL file names exactly these columns, in their order. A missing
// or empty file counts as the same. Prompts and results begin like a table, and nobody could make them again.
func (t *task) hasSameNames(path string) bool {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }() // it was only read
	line := json.NewDecoder(file)
	if first, err := line.Token(); err != nil || first != json.Delim('{') {
		return errors.Is(err, io.EOF)
	}
	for i := range t.columns {
		var value json.RawMessage
		if name, err := line.Token(); err != nil || name != t.columns[i].name || line.Decode(&value) != nil {
			return false
		}
	}
	last, err := line.Token()
	return err == nil && last == json.Delim('}')
}

// write writes all rows.
func (t *task) write(out *bufio.Writer) error {
	t.text = t.form.head(t.text[:0], t.columns)
	t.fault = t.eachRow(func(r *row) error {
		t.rows++
		t.text = t.form.row(t.text, t.columns, r)
		if t.flags.json && r.answerJSON() == nil && !r.record.Failed {
			t.unread++
		}
		if len(t.text) < bufferSize {
			return nil
		}
		return t.flush(out)
	})
	if t.fault != nil {
		return t.fault
	}
	if err := t.flush(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return &writeError{err}
	}
	return nil
}

func (t *task) flush(out *bufio.Writer) error {
	_, err := out.Write(t.text)
	t.text = t.text[:0]
	if err != nil {
		return &writeError{err}
	}
	return nil
}

// answerColumns reads all answers, and returns a column for each member that they have.
func (t *task) answerColumns() ([]column, error) {
	var n names
	in := t.input
	t.input = nil // it is not needed yet
	defer func() { t.input = in }()
	err := t.eachRow(func(r *row) error { return n.add(r.answerJSON()) })
	if err != nil {
		return nil, err
	}
	return n.columnsUnder("answer", true, t.columns), nil
}

// fieldColumns returns a column for each field of the input, but for the ids.
func (in *input) fieldColumns() []column {
	var of names
	for _, name := range in.names.list {
		if name != "id" && name != "custom_id" {
			of.list = append(of.list, name)
		}
	}
	return of.columnsUnder("input", false, nil)
}

// eachRow calls take for each wanted item, in the wanted order.
func (t *task) eachRow(take func(*row) error) error {
	if t.flags.inOrder {
		return t.inOrder(take)
	}
	return t.eachRecord(func(of *journal.Record) error { return t.passRow(of, take) })
}

// eachRecord calls take for each record of the output; with --failed only for those of failed items.
func (t *task) eachRecord(take func(*journal.Record) error) error {
	return journal.Records(t.output, t.flags.errors, func(of *journal.Record) error {
		if t.flags.failed && !of.Failed {
			return nil
		}
		return take(of)
	})
}

// passRow makes a row of a record, joins the line of the input to it, and calls take.
func (t *task) passRow(record *journal.Record, take func(*row) error) error {
	r := &t.row
	r.set(record)
	if t.input != nil {
		var err error
		if r.input, err = t.input.lineWithID(rawjson.Unquote(r.id)); err != nil {
			return err
		}
		if r.input == nil {
			t.unjoined++
		}
	}
	return take(r)
}

// inOrder calls take for each item in the order of the input's lines. It sorts the offsets of the records, and then
// reads each by its offset.
func (t *task) inOrder(take func(*row) error) error {
	var parts row
	found := newPlaces(t.output, t.flags.errors)
	err := t.eachRecord(func(record *journal.Record) error {
		parts.set(record)
		line, _ := strconv.ParseUint(string(parts.own.line), 10, 64) // the sum shows that it is a number
		at := uint64(record.Offset)
		if record.Failed {
			at = ^at
		}
		found = append(found, place{line, at})
		return nil
	})
	if err != nil {
		return err
	}
	sort.Sort(found)
	var results, failures *window
	defer func() { results.close(); failures.close() }()
	var (
		parse  journal.Parser
		record journal.Record
	)
	for _, p := range found {
		from, name, at := &results, t.output, int64(p.at)
		if at < 0 {
			from, name, at = &failures, t.flags.errors, ^at
		}
		if *from == nil {
			if *from, err = openWindow(name); err != nil {
				return err
			}
		}
		text, err := (*from).line(at)
		if err != nil {
			return err
		}
		if record, err = parse.Record(text); err != nil {
			return err
		}
		if err := t.passRow(&record, take); err != nil {
			return err
		}
	}
	return nil
}
