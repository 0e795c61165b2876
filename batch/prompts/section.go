package prompts

import "fmt"

// Section is where a part of an input stands in it, so that its lines get the numbers, ids and
// keys that one reader of the whole gives them. A section begins with a line, of a CSV with a
// row, and is not packed. The zero value is that of the first line of an only file.
//
// A reader of a section remembers nothing of it, and so finds no id used twice. Marks tells it what
// Config.Note said of the same line to a reader of the whole.
type Section struct {
	FirstLine int // the number of its first line in its file, from 1; 0 means 1
	// Above is how many lines the files have that stand before this one in the input: Request.Line
	// and LineError.Line count them, and the ids of lines that give none. What a complaint
	// says of the place does not.
	Above int
	// Columns are those of a CSV whose header stands before the section; nil: it begins with it.
	Columns []string
	// Marks is asked what is known of a line, by its number in the input, those above counted.
	// Nil: of none there is anything to know.
	Marks func(line int) Mark
}

// Mark is what the lines of an input decide about one that comes after them. The zero value
// is that of a line like no other.
type Mark struct {
	// Nth is, of a line without an id, how many before it ask the same, and of one that is no
	// request, how many before it are that line to the byte and are none.
	Nth int
	// Taken says that an earlier line has its id: it is no request. That is line By of its file, 0
	// if that is not known; In names the file if it is another.
	Taken bool
	By    int
	In    string
}

// mark is what is known of the line in hand; whole says that the reader must find it out.
func (r *Reader) mark() (m Mark, whole bool) {
	switch s := r.cfg.Section; {
	case s == nil:
		return m, true
	case s.Marks == nil:
		return m, false
	default:
		return s.Marks(r.number()), false
	}
}

// number is that of the line in hand in the whole input.
func (r *Reader) number() int { return r.above() + r.first }

func (r *Reader) above() int {
	if r.cfg.Section == nil {
		return r.linesBefore()
	}
	return r.cfg.Section.Above
}

// begin is what a section says of the reader before its first line.
func (r *Reader) begin(s *Section) {
	r.lines.After(max(s.FirstLine, 1) - 1)
	r.columns = s.Columns
}

// Columns are those of a CSV, once its first row was read; else nil.
func (r *Reader) Columns() []string { return r.columns }

// Offset is how many bytes of the input lie before the line that would be read next; of a
// packed one they are those that it holds.
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
