package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

// What others said stays on its line; errors that were joined have a line each, and our
// own lines stay.
func TestSayfKeepsLines(t *testing.T) {
	two := errors.Join(errors.New("a\nb"), errors.New("c"))
	for got, want := range map[string]string{
		exit.Sayf("%s: %d: %q", "x\ny\x1b", 7, "z"):                                 `x\ny\x1b: 7: "z"`,
		exit.Sayf("%v!", two):                                                       `a\nb` + "\nc!",
		exit.Sayf("%v", fmt.Errorf("%w: %w", errors.New("a\nb"), io.EOF)):           `a\nb: EOF`,
		exit.Sayf("%v", errors.Join(exit.Refuse("a\nb"), exit.Refuse("%s", "c\n"))): "a\nb\n" + `c\n`,
		exit.Sayf("%s", exit.OwnLines("a\nb")):                                      "a\nb",
		exit.PlainText(errors.New("batch: a\nb")):                                   `a\nb`,
		exit.PlainText(errors.Join(errors.New("x\ty"), errors.New("z"))):            `x\ty` + "\nz",
		(&exit.Ending{Code: exit.Usage, Text: "a\nb"}).Error():                      "a\nb",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Code that writes to the terminal, and forgets to clean its text, steers nothing: only the
// live line gets the screen as it is.
func TestTerminalIsNotSteered(t *testing.T) {
	var out, errs strings.Builder
	w := &world.World{
		Args: []string{"plan", "none.jsonl"}, Stdout: &out, Stderr: &errs, Clock: clockwork.NewRealClock(), Release: func() {},
		Env: func(string) (string, bool) { return "", false }, Signals: make(chan os.Signal),
	}
	_ = Run(t.Context(), w)
	for _, to := range []io.Writer{w.Stdout, w.Stderr} {
		must.Get(io.WriteString(to, "\x1b[2J"))(t)
	}
	if text := out.String() + errs.String(); strings.Contains(text, "\x1b") || strings.Count(text, `\x1b[2J`) != 2 {
		t.Errorf("%q", text)
	}
	if _, _ = io.WriteString(w.Screen, "\x1b[K"); !strings.HasSuffix(errs.String(), "\x1b[K") {
		t.Errorf("%q", errs.String())
	}
}
