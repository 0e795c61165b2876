package printable

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/headrace/headrace/internal/must"
)

// What a terminal would obey is shown and does nothing; what people write stays.
func TestEscaped(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"gpt-4o", "gpt-4o", "gpt-4o"},
		{"naïve Übung 模型 👍", "naïve Übung 模型 👍", "naïve Übung 模型 👍"},
		{"a\nb\tc\r", `a\nb\tc\r`, "a\nb\tc\\r"},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"\u009b2J\u202e\x7f\u2028", `\u009b2J\u202e\x7f\u2028`, `\u009b2J\u202e\x7f\u2028`},
		{"\xff\xc3", `\xff\xc3`, `\xff\xc3`},
		{"\U000e0041", `\U000e0041`, `\U000e0041`},
		{`c:\new`, `c:\new`, `c:\new`},
		{"", "", ""},
	} {
		if line, text := Line(c.in), Text(c.in); line != c.line || text != c.text {
			t.Errorf("%q is %q as a line, %q as a text; want %q, %q", c.in, line, text, c.line, c.text)
		}
	}
}

// A Writer says that it wrote what it was given, and fails as what it writes to does.
func TestWriter(t *testing.T) {
	var out strings.Builder
	n, err := Writer{&out}.Write([]byte("a\x1b[0m\n"))
	if n != 6 || err != nil || out.String() != `a\x1b[0m`+"\n" {
		t.Errorf("%d, %v: %q", n, err, out.String())
	}
	gone := errors.New("gone")
	r, w := io.Pipe()
	_ = r.CloseWithError(gone)
	if _, err := (Writer{w}).Write([]byte("a")); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// JSON stays what it was, and Line has one line, whatever is in them.
func FuzzPrintable(f *testing.F) {
	f.Add("m\x1b[31m\u009b2J\u202e\x7f\r\n")
	f.Add("\U000e0041\xff \\u001b")
	f.Fuzz(func(t *testing.T, s string) {
		graphic(t, Line(s))
		graphic(t, strings.NewReplacer("\n", "", "\t", "").Replace(Text(s)))
		line := must.Get(json.Marshal(s))(t)
		before := string(line)
		shown := JSON(line)
		graphic(t, string(shown))
		var was, is string
		if err := errors.Join(json.Unmarshal(line, &was), json.Unmarshal(shown, &is)); err != nil || was != is {
			t.Errorf("%s became %s, %v", line, shown, err)
		}
		if string(line) != before {
			t.Errorf("the line was changed")
		}
	})
}

func graphic(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		t.Errorf("%q is not printable", s)
	}
}
