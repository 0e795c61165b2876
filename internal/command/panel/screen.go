package panel

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/event"
)

// SizeRests is how long a terminal must have had its size before it is painted on: while a
// window is drawn larger or smaller, it is still breaking its rows anew.
const SizeRests = 150 * time.Millisecond

// mostHeld is how many bytes of lines may wait for the size to rest.
const mostHeld = 64 << 10

// A Screen paints rows on a terminal, and lines above them. It belongs to one goroutine. A
// terminal that fails is written to no more: that is no fault of the run.
type Screen struct {
	// What a Screen asks of the world; each may be nil.
	Clock      clockwork.Clock // nil: the real one
	Foreground func() bool     // whether the terminal is this process's to paint on; nil: always
	Continued  func() bool     // whether it was stopped, and goes on, since this was asked last; nil: never
	Reflows    bool            // the terminal breaks its rows anew when it becomes narrower

	out   io.Writer
	size  func() (width, height int)
	style Style

	rows    []string     // on the terminal; the cursor is in the first column of the last of them
	painted size         // of the terminal when they were
	seen    size         // at the last look
	since   time.Time    // since when it has been that; zero: since the first look
	least   int          // the least width that was seen since the rows were painted
	held    bytes.Buffer // lines that wait for the size to rest
	gone    bool         // the terminal has failed
}

type size struct{ width, height int }

// NewScreen is a Screen on a terminal, of which size tells the columns and rows. What is
// written to out steers it.
func NewScreen(out io.Writer, size func() (width, height int), style Style) *Screen {
	return &Screen{out: out, size: size, style: style}
}

// Width is how many columns the terminal has.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Paint shows how a run stands, as Layout has it, unless that is not the moment: the size has
// not rested, or the process is in the background.
func (s *Screen) Paint(p *event.Progress, speeds []float64, span time.Duration) {
	switch {
	case !s.mine():
		s.flush()
		return
	case !s.rested():
		return
	}
	rows := Layout(p, speeds, span, s.seen.width, s.seen.height, s.style)
	var f frame
	f.from(s.rows)
	switch {
	case s.isLost():
		f.broken(s.style, s.seen.width, s.Reflows)
		f.erase()
	case s.held.Len() > 0:
		f.erase()
	case s.painted != s.seen:
		f.forget()
	}
	f.lines(s.held.Bytes())
	f.paint(rows)
	s.held.Reset()
	s.rows, s.painted, s.least = rows, s.seen, s.seen.width
	s.write(f.Bytes())
}

// Above writes lines above what is painted: write is called once, with a buffer.
func (s *Screen) Above(write func(io.Writer)) {
	write(&s.held)
	if n := s.held.Len(); n > 0 && s.held.Bytes()[n-1] != '\n' {
		s.held.WriteByte('\n')
	}
	if !s.mine() {
		s.flush()
		return
	}
	if rested := s.rested(); len(s.rows) > 0 && (!rested || s.painted != s.seen) {
		if s.held.Len() > mostHeld {
			s.Close()
		}
		return
	}
	var f frame
	f.from(s.rows)
	f.erase()
	f.lines(s.held.Bytes())
	f.paint(s.rows)
	s.held.Reset()
	s.write(f.Bytes())
}

// Close takes away what is painted: the cursor is then where it began. Painting may begin
// anew.
func (s *Screen) Close() {
	if s.mine() && len(s.rows) > 0 {
		s.look()
		var f frame
		f.from(s.rows)
		if s.isLost() {
			f.broken(s.style, s.seen.width, s.Reflows)
		}
		f.erase()
		s.rows = nil
		s.write(f.Bytes())
	}
	s.flush()
}

// mine is true while the terminal is this process's to paint on. Where it was another's in the
// meantime nobody knows where the rows are.
func (s *Screen) mine() bool {
	if s.gone {
		return false
	}
	again := s.Continued != nil && s.Continued()
	foreground := s.Foreground == nil || s.Foreground()
	if again || !foreground {
		s.rows = nil
	}
	return foreground
}

// flush writes lines that wait, for themselves.
func (s *Screen) flush() {
	var f frame
	f.lines(s.held.Bytes())
	s.held.Reset()
	s.write(f.Bytes())
}

// rested looks at the terminal's size, and is true if that has not changed of late.
func (s *Screen) rested() bool {
	s.look()
	return s.since.IsZero() || s.now().Sub(s.since) >= SizeRests
}

// look sees a change: the size at the first look is none.
func (s *Screen) look() {
	was := s.seen
	s.seen.width, s.seen.height = s.size()
	if s.seen != was && was != (size{}) {
		s.since = s.now()
		s.least = min(s.least, s.seen.width)
	}
}

func (s *Screen) now() time.Time {
	if s.Clock == nil {
		s.Clock = clockwork.NewRealClock()
	}
	return s.Clock.Now()
}

// isLost is true if the rows may not be where they were painted: the terminal has broken them
// anew, or is so low that some have left it.
func (s *Screen) isLost() bool {
	return len(s.rows) > 0 && (s.least < s.painted.width || len(s.rows) > s.seen.height)
}

func (s *Screen) write(b []byte) {
	if len(b) == 0 || s.gone {
		return
	}
	if _, err := s.out.Write(b); err != nil {
		s.gone, s.rows = true, nil
	}
}

// A frame is what is written at once. It begins, and ends, with the cursor in the first column
// of the last row that it knows.
type frame struct {
	bytes.Buffer
	on  []string // the rows that are there
	old bool     // what they say is not known
}

// Steering of the terminal. Rows are erased one by one: see the package.
const (
	eraseRow  = "\x1b[2K"
	eraseRest = "\x1b[K"
)

func (f *frame) from(rows []string) { f.on = rows }

// forget takes the rows to be there, and to say something else.
func (f *frame) forget() { f.old = true }

func (f *frame) up(n int) {
	if n > 0 {
		fmt.Fprintf(f, "\x1b[%dA", n)
	}
}

// broken takes the rows to be there as a terminal of that width has broken them anew, if it
// does: the cursor is then where the last of them begins. Of one that does not, or of which
// nobody knows, each but the last is taken for one line: the others may be somebody else's.
func (f *frame) broken(style Style, width int, reflows bool) {
	lines, last := 0, 1
	for _, row := range f.on {
		if last = max(1, (style.Cells(withoutColour(row))+width-1)/max(1, width)); reflows {
			lines += last
		} else {
			lines++
		}
	}
	if !reflows {
		lines += last - 1
	}
	f.WriteString(strings.Repeat("\r\n", last-1)) // to its end; lines that are not there come, and are erased
	f.on = make([]string, lines)
}

// erase takes the rows away, and goes to where the first of them was.
func (f *frame) erase() {
	for i := range f.on {
		if i > 0 {
			f.up(1)
		}
		f.WriteString("\r" + eraseRow)
	}
	f.on = nil
}

// lines writes lines where the cursor is.
func (f *frame) lines(text []byte) {
	for line := range bytes.Lines(text) {
		f.Write(bytes.TrimRight(line, "\r\n"))
		f.WriteString("\r\n")
	}
}

// paint puts rows in the place of those that are there: only what differs is written.
func (f *frame) paint(rows []string) {
	if !f.old && slices.Equal(rows, f.on) {
		return
	}
	f.WriteString("\r")
	f.up(len(f.on) - 1)
	for i := range max(len(rows), len(f.on)) {
		if i > 0 {
			f.WriteString("\r\n")
		}
		switch {
		case i >= len(rows):
			f.WriteString(eraseRow)
		case f.old || i >= len(f.on) || rows[i] != f.on[i] || i == len(rows)-1: // at the last one keys are echoed
			f.WriteString(rows[i] + eraseRest)
		}
	}
	f.up(len(f.on) - max(1, len(rows)))
	f.WriteString("\r")
	f.on = rows
}
