package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
)

// What others said stays on its line; errors that were joined have a line each, and our
// own lines stay.
func TestSayfKeepsLines(t *testing.T) {
	two := errors.Join(errors.New("a\nb"), errors.New("c"))
	for got, want := range map[string]string{
		sayf("%s: %d: %q", "x\ny\x1b", 7, "z"):                       `x\ny\x1b: 7: "z"`,
		sayf("%v!", two):                                             `a\nb` + "\nc!",
		sayf("%v", fmt.Errorf("%w: %w", errors.New("a\nb"), io.EOF)): `a\nb: EOF`,
		sayf("%v", errors.Join(refuse("a\nb"), refuse("%s", "c\n"))): "a\nb\n" + `c\n`,
		sayf("%s", ownLines("a\nb")):                                 "a\nb",
		plainText(errors.New("batch: a\nb")):                         `a\nb`,
		plainText(errors.Join(errors.New("x\ty"), errors.New("z"))):  `x\ty` + "\nz",
		(&ending{code: ExitUsage, text: "a\nb"}).Error():             "a\nb",
		shellQuote("a\n\x1b[2Jb"):                                    `"$(printf 'a\012\033[2Jb')"`,
		commandIn("headrace", "run", "a b", "\u202e"):                `headrace run 'a b' "$(printf '\342\200\256')"`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func commandIn(name string, args ...string) string {
	return (&World{name: name, args: args}).resumeLine(false)
}

// Code that writes to the terminal, and forgets to clean its text, steers nothing: only the
// live line gets the screen as it is.
func TestTerminalIsNotSteered(t *testing.T) {
	var out, errs strings.Builder
	w := &World{
		args: []string{"plan", "none.jsonl"}, stdout: &out, stderr: &errs, clock: clockwork.NewRealClock(), release: func() {},
		env: func(string) (string, bool) { return "", false }, signals: make(chan os.Signal),
	}
	_ = run(t.Context(), w)
	for _, to := range []io.Writer{w.stdout, w.stderr} {
		if _, err := io.WriteString(to, "\x1b[2J"); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String() + errs.String(); strings.Contains(text, "\x1b") || strings.Count(text, `\x1b[2J`) != 2 {
		t.Errorf("%q", text)
	}
	if _, _ = io.WriteString(w.screen, "\x1b[K"); !strings.HasSuffix(errs.String(), "\x1b[K") {
		t.Errorf("%q", errs.String())
	}
}
