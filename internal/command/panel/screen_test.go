package panel

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a Screen on a model of a terminal, at a time that stands still.
type stage struct {
	*Screen
	t     *testing.T
	term  *terminal
	clock *clockwork.FakeClock
	run   shown
}

func newStage(t *testing.T, width, height int) *stage {
	t.Helper()
	s := &stage{t: t, term: newTerminal(t, width, height, false), clock: clockwork.NewFakeClock(), run: steady()}
	s.Screen = NewScreen(s.term, s.term.size, Style{})
	s.Clock = s.clock
	return s
}

// paint paints the run as it is now, half a second later.
func (s *stage) paint() {
	s.clock.Advance(500 * time.Millisecond)
	s.run.ElapsedS += 0.5
	s.Paint(&s.run.Progress, s.run.list(), s.run.span)
}

func (s *stage) say(line string) { s.Above(func(w io.Writer) { fmt.Fprintln(w, line) }) }

func (s *stage) resize(width, height int) { s.term.resize(width, height) }

// layout returns the rows that the terminal should show now.
func (s *stage) layout() []string {
	return Layout(&s.run.Progress, s.run.list(), s.run.span, s.term.width, s.term.height, Style{})
}

// shows checks what stands on the terminal: lines, and the run as it is below them.
func (s *stage) shows(lines ...string) {
	s.t.Helper()
	want := lines
	for _, row := range s.layout() {
		want = append(want, asShown(row))
	}
	if got := s.term.text(); !slices.Equal(got, want) {
		s.t.Errorf("shown:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Lines come above the panel, whole, and the panel goes on below them; at the end it is gone.
func TestLinesAbove(t *testing.T) {
	s := newStage(t, 80, 24)
	s.say("first")
	s.Paint(&s.run.Progress, s.run.list(), s.run.span)
	s.say("at once")
	s.shows("first", "at once")
	long := strings.Repeat("long ", 40)
	s.say(long)
	s.say("after")
	s.paint()
	s.shows("first", "at once", strings.TrimRight(long[:80], " "), strings.TrimRight(long[80:160], " "), strings.TrimRight(long[160:], " "), "after")
	s.Close()
	if got := s.term.text(); len(got) != 7 || got[6] != "" || s.term.row != 6 || s.term.column != 0 {
		t.Errorf("after the end the cursor is in row %d, and there is %q", s.term.row, got)
	}
}

// A frame is one write, of the rows alone that have changed; nothing is written if none has.
func TestOnlyWhatChanged(t *testing.T) {
	s := newStage(t, 80, 24)
	s.paint()
	var out strings.Builder
	s.out = &out
	s.run.Done++
	s.paint()
	if got := out.String(); strings.Contains(got, "Held") || !strings.Contains(got, "52,115") || s.term.writes != 1 {
		t.Errorf("%q, %d writes", got, s.term.writes)
	}
	out.Reset()
	s.Paint(&s.run.Progress, s.run.list(), s.run.span)
	if out.String() != "" {
		t.Errorf("%q is written, and nothing had changed", out.String())
	}
}

// A panel that gets fewer rows, or more, leaves none behind.
func TestRowsComeAndGo(t *testing.T) {
	s := newStage(t, 80, 24)
	for _, change := range []func(){func() { s.run.BoundMore = "" }, func() { s.run.Latest = "" }, func() { s.run = steady() }, func() { s.run.State = draining }} {
		s.paint()
		change()
		s.paint()
		s.shows()
	}
}

// Nothing is painted until the size has rested, and lines wait for that, too.
func TestSizeMustRest(t *testing.T) {
	s := newStage(t, 80, 24)
	s.paint()
	s.resize(100, 24)
	writes := s.term.writes
	s.paint()
	s.say("meanwhile")
	for _, width := range []int{101, 102, 103} {
		s.resize(width, 24)
		s.paint()
	}
	if s.term.writes != writes {
		t.Error("it was painted while the size had not rested")
	}
	s.clock.Advance(SizeRests)
	s.Paint(&s.run.Progress, s.run.list(), s.run.span)
	s.shows("meanwhile")
}

// A terminal that is resized shows one panel, and what stood above it, whether it breaks rows
// anew or not. What has left one that became too low is in its history.
func TestResized(t *testing.T) {
	for _, reflows := range []bool{false, true} {
		s := newStage(t, 80, 24)
		s.Reflows, s.term.reflows = reflows, reflows
		s.say("above")
		s.paint()
		for _, size := range []size{{50, 24}, {200, 50}, {100, 50}, {40, 50}, {80, 24}, {80, 11}, {80, 24}, {30, 40}, {120, 40}} {
			s.resize(size.width, size.height)
			s.paint()
			s.paint()
			s.paint()
			if s.shows("above"); t.Failed() {
				t.Fatalf("resized to %v, it breaks rows anew: %t", size, reflows)
			}
		}
		s.resize(80, 5) // ten rows do not stand in five
		s.paint()
		s.paint()
		s.paint()
		if !s.term.ends(s.layout()) {
			t.Errorf("%q", s.term.text())
		}
	}
}

// Of a terminal that nobody knows no line is erased that may be another's: where it breaks rows
// anew, a part of the old panel stays.
func TestUnknownTerminalLosesNoLine(t *testing.T) {
	s := newStage(t, 80, 24)
	s.term.reflows = true
	s.say("above")
	s.paint()
	s.resize(50, 24)
	s.paint()
	s.paint()
	s.paint()
	if got := s.term.text(); got[0] != "above" || len(got) < 1+len(s.layout()) || !s.term.ends(s.layout()) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// A width that was less for a moment leaves nothing behind, nor does the end of a panel on a
// terminal that has just become narrower.
func TestNarrowForAMoment(t *testing.T) {
	for _, reflows := range []bool{false, true} {
		s := newStage(t, 80, 24)
		s.Reflows, s.term.reflows = reflows, reflows
		s.say("above")
		s.paint()
		s.resize(50, 24)
		s.paint()
		s.resize(80, 24)
		s.paint()
		s.paint()
		s.shows("above")
		s.resize(50, 24)
		s.Close()
		if got := s.term.text(); len(got) != 2 || got[0] != "above" || got[1] != "" {
			t.Errorf("it breaks rows anew (%t): %q", reflows, got)
		}
	}
}

// A terminal is known by its variables; what runs in GNU screen is that.
func TestReflows(t *testing.T) {
	for vars, want := range map[string]bool{
		"": false, "TERM=xterm": false, "TMUX=/tmp/x": true, "VTE_VERSION=7600": true, "VTE_VERSION=": false,
		"STY=1 VTE_VERSION=7600": false, "STY=1 TMUX=/tmp/x": true, "TERM_PROGRAM=vscode": true,
	} {
		env := func(name string) (string, bool) {
			for _, pair := range strings.Fields(vars) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value, true
				}
			}
			return "", false
		}
		if got := Reflows(env); got != want {
			t.Errorf("%s: %t", vars, got)
		}
	}
}

// In the background nothing is painted, and lines come as they are; the panel begins anew when
// the process is in the foreground again, or goes on after it was stopped.
func TestBackground(t *testing.T) {
	s := newStage(t, 80, 24)
	foreground, continued := true, false
	s.Foreground = func() bool { return foreground }
	s.Continued = func() bool { was := continued; continued = false; return was }
	s.paint()
	before := s.layout()
	foreground = false
	writes := s.term.writes
	s.paint()
	if s.term.writes != writes {
		t.Error("it was painted in the background")
	}
	s.term.row, s.term.column = len(s.term.rows)-1, 0
	_, _ = io.WriteString(s.term, "\r\n[1]+ Stopped\r\n")
	s.say("in the background")
	foreground = true
	s.paint()
	want := []string{}
	for _, row := range before {
		want = append(want, asShown(row))
	}
	want = append(want, "[1]+ Stopped", "in the background")
	s.shows(want...)

	for _, row := range s.layout() {
		want = append(want, asShown(row))
	}
	_, _ = io.WriteString(s.term, "\r\n$ fg\r\n")
	continued = true
	s.paint()
	s.shows(append(want, "$ fg")...)
}

// broken is a terminal that has gone away.
type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("input/output error")
}

// A terminal that fails is left alone from then on.
func TestTerminalGone(t *testing.T) {
	s := newStage(t, 80, 24)
	gone := &broken{}
	s.out = gone
	s.paint()
	s.say("nobody reads it")
	s.paint()
	s.Close()
	if gone.writes != 1 {
		t.Errorf("%d writes", gone.writes)
	}
}

// Lines do not wait for ever while a window is drawn larger and smaller.
func TestLinesWaitInBoundedRoom(t *testing.T) {
	s := newStage(t, 80, 24)
	s.paint()
	s.resize(90, 24)
	line := strings.Repeat("x", 79)
	for i := range 2 * mostBuffered / 80 {
		s.resize(90+i%2, 24)
		s.say(line)
	}
	if s.buffered.Len() > mostBuffered {
		t.Errorf("%d bytes wait", s.buffered.Len())
	}
	s.Close()
	if n := strings.Count(strings.Join(s.term.text(), "\n"), line); n != 2*mostBuffered/80 {
		t.Errorf("%d lines", n)
	}
}
