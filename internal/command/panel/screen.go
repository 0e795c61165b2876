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

// SizeRests is the time for which a terminal must have had its size before a Screen paints
// on it. While a user resizes the window, the terminal is still breaking its rows again.
const SizeRests = 150 * time.Millisecond

// mostBuffered is the number of bytes of lines that may wait for the size to rest.
const mostBuffered = 64 << 10

// A Screen paints rows on a terminal, and lines above them. It belongs to one goroutine. It
// stops writing to a terminal that fails: that is no fault of the run.
type Screen struct {
	// What a Screen needs from its surroundings; each may be nil.
	Clock      clockwork.Clock // nil: the real one
	Foreground func() bool     // whether the terminal is this process's to paint on; nil: always
	Continued  func() bool     // whether the process was stopped, and goes on, since the last call; nil: never
	Reflows    bool            // the terminal breaks its rows again when it becomes narrower

	out   io.Writer
	size  func() (width, height int)
	style Style

	rows        []string     // on the terminal; the cursor is in the first column of the last of them
	paintedSize size         // the terminal's size when they were painted
	currentSize size         // the size at the last look
	sizeSince   time.Time    // when it became that; zero: at the first look
	leastWidth  int          // the least width seen since the rows were painted
	buffered    bytes.Buffer // lines that wait for the size to rest
	failed      bool         // the terminal has failed
}

type size struct{ width, height int }

// NewScreen returns a Screen on a terminal. Size returns its columns and rows. Text written
// to out steers it.
func NewScreen(out io.Writer, size func() (width, height int), style Style) *Screen {
	return &Screen{out: out, size: size, style: style}
}

// Width returns the number of columns of the terminal.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Paint shows how a run stands, as Layout has it.
func (s *Screen) Paint(p *event.Progress, speeds []float64, span time.Duration) {
	s.PaintRows(func(width, height int) []string { return Layout(p, speeds, span, width, height, s.style) })
}

// PaintRows shows the rows that layout makes for the terminal's size. It paints nothing while the size
// has not rested, or the process is in the background.
func (s *Screen) PaintRows(layout func(width, height int) []string) {
	switch {
	case !s.mayPaint():
		s.flush()
		return
	case !s.sizeRested():
		return
	}
	rows := layout(s.currentSize.width, s.currentSize.height)
	f := frame{rows: s.rows}
	switch {
	case s.rowsMoved():
		f.assumeBroken(s.style, s.currentSize.width, s.Reflows)
		f.erase()
	case s.buffered.Len() > 0:
		f.erase()
	case s.paintedSize != s.currentSize:
		f.textUnknown = true
	}
	f.lines(s.buffered.Bytes())
	f.paint(rows)
	s.buffered.Reset()
	s.rows, s.paintedSize, s.leastWidth = rows, s.currentSize, s.currentSize.width
	s.write(f.Bytes())
}

// Above writes lines above the painted rows: it calls write once, with a buffer.
func (s *Screen) Above(write func(io.Writer)) {
	write(&s.buffered)
	if n := s.buffered.Len(); n > 0 && s.buffered.Bytes()[n-1] != '\n' {
		s.buffered.WriteByte('\n')
	}
	if !s.mayPaint() {
		s.flush()
		return
	}
	if rested := s.sizeRested(); len(s.rows) > 0 && (!rested || s.paintedSize != s.currentSize) {
		if s.buffered.Len() > mostBuffered {
			s.Close()
		}
		return
	}
	f := frame{rows: s.rows}
	f.erase()
	f.lines(s.buffered.Bytes())
	f.paint(s.rows)
	s.buffered.Reset()
	s.write(f.Bytes())
}

// Close removes the painted rows: the cursor is then where it began. Painting may begin
// again.
func (s *Screen) Close() {
	if s.mayPaint() && len(s.rows) > 0 {
		s.checkSize()
		f := frame{rows: s.rows}
		if s.rowsMoved() {
			f.assumeBroken(s.style, s.currentSize.width, s.Reflows)
		}
		f.erase()
		s.rows = nil
		s.write(f.Bytes())
	}
	s.flush()
}

// mayPaint reports whether this process may paint on the terminal. It forgets the rows if another process had the
// terminal meanwhile.
func (s *Screen) mayPaint() bool {
	if s.failed {
		return false
	}
	again := s.Continued != nil && s.Continued()
	foreground := s.Foreground == nil || s.Foreground()
	if again || !foreground {
		s.rows = nil
	}
	return foreground
}

// flush writes the waiting lines without any rows.
func (s *Screen) flush() {
	var f frame
	f.lines(s.buffered.Bytes())
	s.buffered.Reset()
	s.write(f.Bytes())
}

// sizeRested looks at the terminal's size, and reports whether that has rested.
func (s *Screen) sizeRested() bool {
	s.checkSize()
	return s.sizeSince.IsZero() || s.now().Sub(s.sizeSince) >= SizeRests
}

// checkSize notes a change of size. The first look is no change.
func (s *Screen) checkSize() {
	was := s.currentSize
	s.currentSize.width, s.currentSize.height = s.size()
	if s.currentSize != was && was != (size{}) {
		s.sizeSince = s.now()
		s.leastWidth = min(s.leastWidth, s.currentSize.width)
	}
}

func (s *Screen) now() time.Time {
	if s.Clock == nil {
		s.Clock = clockwork.NewRealClock()
	}
	return s.Clock.Now()
}

// rowsMoved reports whether the rows may not be where they were painted: the terminal has broken them again, or is
// too low for all of them.
func (s *Screen) rowsMoved() bool {
	return len(s.rows) > 0 && (s.leastWidth < s.paintedSize.width || len(s.rows) > s.currentSize.height)
}

func (s *Screen) write(b []byte) {
	if len(b) == 0 || s.failed {
		return
	}
	if _, err := s.out.Write(b); err != nil {
		s.failed, s.rows = true, nil
	}
}

// A frame is the text of one write. It begins, and ends, with the cursor in the first column
// of the last row that it knows.
type frame struct {
	bytes.Buffer
	rows        []string // the rows on the terminal
	textUnknown bool     // their text is not known
}

// Sequences that steer the terminal. Rows are erased one by one: see the package.
const (
	eraseRow  = "\x1b[2K"
	eraseRest = "\x1b[K"
)

func (f *frame) up(n int) {
	if n > 0 {
		fmt.Fprintf(f, "\x1b[%dA", n)
	}
}

// assumeBroken replaces the rows by the lines that a terminal of that width has made of them, and moves to the last
// one. If the terminal does not break rows again, each row but the last counts as one line: further lines may be
// somebody else's.
func (f *frame) assumeBroken(style Style, width int, reflows bool) {
	lines, last := 0, 1
	for _, row := range f.rows {
		if last = max(1, (style.Cells(withoutColour(row))+width-1)/max(1, width)); reflows {
			lines += last
		} else {
			lines++
		}
	}
	if !reflows {
		lines += last - 1
	}
	f.WriteString(strings.Repeat("\r\n", last-1)) // to its end; missing lines are added, and erased
	f.rows = make([]string, lines)
}

// erase removes the rows, and moves to the place of the first.
func (f *frame) erase() {
	for i := range f.rows {
		if i > 0 {
			f.up(1)
		}
		f.WriteString("\r" + eraseRow)
	}
	f.rows = nil
}

// lines writes lines at the cursor.
func (f *frame) lines(text []byte) {
	for line := range bytes.Lines(text) {
		f.Write(bytes.TrimRight(line, "\r\n"))
		f.WriteString("\r\n")
	}
}

// paint replaces the rows on the terminal: it writes only what differs.
func (f *frame) paint(rows []string) {
	if !f.textUnknown && slices.Equal(rows, f.rows) {
		return
	}
	f.WriteString("\r")
	f.up(len(f.rows) - 1)
	for i := range max(len(rows), len(f.rows)) {
		if i > 0 {
			f.WriteString("\r\n")
		}
		switch {
		case i >= len(rows):
			f.WriteString(eraseRow)
		case f.textUnknown || i >= len(f.rows) || rows[i] != f.rows[i] || i == len(rows)-1: // the terminal echoes keys at the last one
			f.WriteString(rows[i] + eraseRest)
		}
	}
	f.up(len(f.rows) - max(1, len(rows)))
	f.WriteString("\r")
	f.rows = rows
}
