package prompts

import (
	"fmt"
	"io"
	"sort"
)

// Section says where a part of an input stands in the whole. Its lines then get the
// numbers, ids and keys that one reader of the whole gives them. A section begins with a
// line, or with a row of a CSV, and is not packed. The zero value begins at the first line
// of a single file.
//
// A reader of a section remembers nothing of it, and so finds no id used twice. Marks
// returns what Config.Note said of the same line to a reader of the whole.
type Section struct {
	FirstLine int // the number of its first line in its file, from 1; 0 means 1
	// Above is the number of lines in the files before this one in the input. Request.Line,
	// LineError.Line and the ids of lines that give none count them. The place in a
	// complaint does not.
	Above int
	// Columns are those of a CSV whose header stands before the section; nil: it begins
	// with the header.
	Columns []string
	// Marks returns what is known of a line, by its number in the input, lines above
	// included. Nil: nothing is known of any line.
	Marks func(line int) Mark
}

// Mark holds what earlier lines of the input decide about a line. The zero value is that of
// a line like no other.
type Mark struct {
	// Nth counts equal lines before this one. For a line without an id, these are lines
	// that ask the same. For a line that is not a request, they have the same bytes and are
	// not requests either.
	Nth int
	// Taken says that an earlier line has the same id: this one is not a request. By is
	// that line of its file, 0 if unknown; In names the file if it is another.
	Taken bool
	By    int
	In    string
}

// mark returns what is known of the current line. whole reports that the reader has the whole input, and must find
// it out itself.
func (r *Reader) mark() (m Mark, whole bool) {
	switch s := r.cfg.Section; {
	case s == nil:
		return m, true
	case s.Marks == nil:
		return m, false
	default:
		return s.Marks(r.inputLine()), false
	}
}

// inputLine returns the number of the current line in the whole input.
func (r *Reader) inputLine() int { return r.linesAbove() + r.first }

func (r *Reader) linesAbove() int {
	if r.cfg.Section == nil {
		return r.linesBefore()
	}
	return r.cfg.Section.Above
}

// Columns returns the columns of a CSV, once its first row is read; else nil.
func (r *Reader) Columns() []string { return r.columns }

// Offset returns the number of bytes of the input before the line that would be read next.
// For a packed input these are unpacked bytes.
func (r *Reader) Offset() int64 { return r.lines.Offset() }

// where says which line had an id before.
func (m *Mark) where() string {
	switch {
	case m.By == 0:
		return "an earlier line"
	case m.In != "":
		return fmt.Sprintf("line %d of %s", m.By, m.In)
	}
	return fmt.Sprintf("line %d", m.By)
}

// File is one of several files that form one input. A Config holds the same fields for the
// first file.
type File struct {
	Name   string // names it in complaints
	In     io.Reader
	Format Format
}

// fileAt is a file, with its end in the input.
type fileAt struct {
	name string
	end  int // lines of the input up to its end
}

// nextFile continues with the next file. The error is io.EOF if there is none.
func (r *Reader) nextFile() error {
	file, err := r.cfg.More()
	if err != nil {
		return err
	}
	r.filesBefore = append(r.filesBefore, fileAt{r.cfg.Name, r.Line()})
	r.cfg.Name, r.cfg.Format, r.first = file.Name, file.Format, 0
	r.open(file.In)
	return nil
}

// linesBefore counts the lines of the files before the current one.
func (r *Reader) linesBefore() int {
	if len(r.filesBefore) == 0 {
		return 0
	}
	return r.filesBefore[len(r.filesBefore)-1].end
}

// inFile turns the By of a mark, a line of the input, into a line of its file. It sets In if that file is not the
// current one.
func (r *Reader) inFile(m *Mark) {
	i := sort.Search(len(r.filesBefore), func(i int) bool { return m.By <= r.filesBefore[i].end })
	if m.By == 0 {
		return
	}
	if i < len(r.filesBefore) {
		m.In = r.filesBefore[i].name
	}
	if i > 0 {
		m.By -= r.filesBefore[i-1].end
	}
}

// mark returns the place of a request, for a complaint about a line of file.
func (q *Request) mark(file string) Mark {
	switch q.File {
	case "":
		return Mark{By: q.Line}
	case file:
		return Mark{By: q.FileLine}
	}
	return Mark{By: q.FileLine, In: q.File}
}
