package world

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jonboulle/clockwork"
	"golang.org/x/term"

	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
)

// A World is everything outside the command that it touches. Only Main makes a real one;
// tests give another.
type World struct {
	Name    string   // how the command was called, for the line that resumes
	Args    []string // without the name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Screen  io.Writer   // stderr as it is, for what steers a terminal; Run sets it
	Window  io.Writer   // stdout as it is, for what steers a terminal; Run sets it
	Unread  func() bool // whether a write to stdout has failed; Run sets it
	Env     func(string) (string, bool)
	Clock   clockwork.Clock
	Chance  uint64           // the seed where the user sets none
	Signals <-chan os.Signal // Ctrl-C, SIGTERM, SIGHUP
	Asks    <-chan os.Signal // SIGUSR1, and SIGINFO where it exists: the user asks how the run stands
	Release func()           // gives the signals their usual effect back
	Runtime string           // the folder in which runs of this user find each other; "": they do not

	Terminal Terminal
	Converse bool // stdin and stderr are terminals: a person reads a question and can answer it
}

// A Terminal is the one at stderr. The zero value is none.
type Terminal struct {
	Size       func() (columns, rows int) // nil: stderr is no terminal, or one that cannot be steered
	Foreground func() bool                // whether this process is in its foreground; nil: always
	Continued  func() bool                // whether it was stopped, and goes on, since the last call; nil: never
}

// NewScreen returns the screen of the terminal, which must be one.
func (w *World) NewScreen(style panel.Style) *panel.Screen {
	screen := panel.NewScreen(w.Screen, w.Terminal.Size, style)
	screen.Clock, screen.Foreground, screen.Continued = w.Clock, w.Terminal.Foreground, w.Terminal.Continued
	screen.Reflows = panel.Reflows(w.Env)
	return screen
}

// TerminalAt returns the terminal at f.
func TerminalAt(f *os.File) Terminal {
	size := panel.SizeOf(f)
	if size == nil {
		return Terminal{}
	}
	return Terminal{Size: size, Foreground: panel.ForegroundOf(f), Continued: panel.Continued()}
}

// Converse reports whether a person can read a question at out and answer it at in.
func Converse(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// CalledAs returns the words to type to call this program again. "go run" builds it in a
// folder that is gone afterwards.
func CalledAs(arg0 string) string {
	path := filepath.ToSlash(arg0)
	if !strings.Contains(path, "/go-build") || !strings.Contains(path, "/exe/") {
		return arg0
	}
	if info, err := os.Stat("cmd/headrace"); err == nil && info.IsDir() {
		return "go run ./cmd/headrace"
	}
	return "headrace"
}

// Again returns the same world for a command line that continues this one.
func (w *World) Again(args []string) *World {
	again := *w
	again.Args = args
	return &again
}

// Width returns the number of columns of the terminal.
func (w *World) Width() int {
	if w.Terminal.Size == nil {
		return progress.DefaultWidth
	}
	columns, _ := w.Terminal.Size()
	return columns
}

// RuntimeFolder returns the folder in which the runs of one user find each other. It is gone when
// the machine is off.
func RuntimeFolder(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "headrace")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("headrace-%d", os.Getuid()))
}
