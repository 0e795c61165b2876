package settings

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// What is quoted comes out of a shell as it went in.
func TestShellQuote(t *testing.T) {
	for _, word := range []string{"plain-1_2.jsonl", "a b", "", "it's", `"`, "$HOME", "`x`", "a\nb", "a\n", "100%\x1b'\\\\ü\u202e", "*", "é", "~", "--x=y,z", "#"} {
		quoted := ShellQuote(word)
		out, err := exec.Command("sh", "-c", "printf %s "+quoted).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: quoted %s, came out as %q, %v", word, quoted, out, err)
		}
	}
	if got, want := ShellQuote("a\n\x1b[2Jb"), `"$(printf 'a\012\033[2Jb')"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := commandLine("headrace", []string{"run", "a b", "\u202e"}, false), `headrace run 'a b' "$(printf '\342\200\256')"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ShellQuote("http://127.0.0.1:8080/v1"); got != "http://127.0.0.1:8080/v1" {
		t.Errorf("quoted without need: %s", got)
	}
}

// The line that resumes is the command as it was given; a run to standard output
// goes on from a file.
func TestResumeLine(t *testing.T) {
	tests := []struct {
		args, want string
		toStdout   bool
	}{
		{"run in.jsonl -o out.jsonl -c 8", "headrace run in.jsonl -o out.jsonl -c 8", false},
		{"run in.jsonl -o - -c 8", "headrace run in.jsonl -o results.jsonl -c 8", true},
		{"run - --output -", "headrace run - --output results.jsonl", true},
		{"run - --output=-", "headrace run - --output=results.jsonl", true},
		{"run - -o-", "headrace run - --output=results.jsonl", true},
		{"run in.jsonl", "headrace run in.jsonl -o results.jsonl", true},
	}
	for _, tt := range tests {
		if got := commandLine("headrace", strings.Fields(tt.args), tt.toStdout); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
	if got := commandLine("go run ./cmd/headrace", []string{"run", "a b"}, false); got != "go run ./cmd/headrace run 'a b'" {
		t.Error(got)
	}
}

// --max-failures takes a number of items, 0 for no bound, or a share of them. It shows a bound
// as it was given and hands it to the run. Anything else leaves the bound as it was.
func TestFailureBound(t *testing.T) {
	for given, want := range map[string]struct{ shown, options string }{
		"0":     {"0", "[]"},
		"1":     {"1", "[WithMaxFailures(1)]"},
		"7":     {"7", "[WithMaxFailures(7)]"},
		" 20 ":  {"20", "[WithMaxFailures(20)]"},
		"5%":    {"5%", "[WithMaxFailureShare(0.05)]"},
		"0.5%":  {"0.5%", "[WithMaxFailureShare(0.005)]"},
		"7%":    {"7%", "[WithMaxFailureShare(0.07)]"},
		"14 %":  {"14%", "[WithMaxFailureShare(0.14)]"},
		"12.5%": {"12.5%", "[WithMaxFailureShare(0.125)]"},
	} {
		var b failureBound
		if err := b.Set(given); err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		if got := fmt.Sprint(b.Options()); b.String() != want.shown || got != want.options {
			t.Errorf("%q is shown as %s and gives %s, want %s and %s", given, b.String(), got, want.shown, want.options)
		}
	}
	for given, why := range map[string]string{
		"-1": "number", "x": "number", "": "number", "1e3": "number", "2.5": "number", "7 items": "number", "99999999999999999999": "number",
		"0%": "share", "100%": "share", "101%": "share", "-5%": "share", "%": "share", "x%": "share", "NaN%": "share", "Inf%": "share", "5%%": "share",
	} {
		b := failureBound{Items: 3}
		if err := b.Set(given); err == nil || !strings.Contains(err.Error(), why) || b != (failureBound{Items: 3}) {
			t.Errorf("%q: %v, want a complaint about a %s; the bound is %+v", given, err, why, b)
		}
	}
}
