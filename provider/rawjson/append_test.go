package rawjson

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// A string is written the same in one go as character by character, wherever what
// needs an escape stands among what is taken eight bytes at a time.
func TestAppendStringAsSlowly(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	odd := []string{"\"", "\\", "\x00", "\x1f", " ", "~", "\x7f", "\x80", "\xff", "é", "\u2028", "\u2029", "\uFFFD", "😀", "\n"}
	for range 20_000 {
		var s, want string
		for range rng.IntN(4) {
			s += strings.Repeat("a", rng.IntN(18)) + odd[rng.IntN(len(odd))]
		}
		for i := 0; i < len(s); {
			_, size := utf8.DecodeRuneInString(s[i:])
			one := AppendString(nil, s[i:i+size])
			want += string(one[1 : len(one)-1])
			i += size
		}
		if got := string(AppendString(nil, s)); got != `"`+want+`"` {
			t.Fatalf("%q: got %s, want %q", s, got, want)
		}
	}
}

// A text is what a string says, escapes undone, and nothing of any other value.
func TestAppendText(t *testing.T) {
	for value, want := range map[string]string{`"a\u00e9\n"`: "xaé\n", `""`: "x", "null": "x", "": "x", `{"a":"b"}`: "x", `"\ud83d"`: "x\uFFFD"} {
		if got := string(AppendText([]byte("x"), []byte(value))); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
