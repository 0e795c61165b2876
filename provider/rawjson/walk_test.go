package rawjson

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/internal/must"
)

// decode makes of the value that comes what encoding/json makes of it, walking.
func decode(w *Walk) any {
	switch w.Ahead()[0] {
	case '{':
		in, v := w.Into(), map[string]any{}
		for in.Next() {
			name := string(in.Name)
			v[name] = decode(&in)
		}
		w.Leave(&in)
		return v
	case '[':
		in, v := w.Into(), []any{}
		for in.Next() {
			v = append(v, decode(&in))
		}
		w.Leave(&in)
		return v
	}
	var v any
	_ = json.Unmarshal(w.Skip(), &v)
	return v
}

// checkWalk holds a walk to encoding/json on valid texts, and on all others to its
// promise that it ends.
func checkWalk(t *testing.T, text []byte) {
	t.Helper()
	text = Trim(text)
	var got []any
	w := WalkIn(append(append([]byte("["), text...), ']'))
	for w.Next() {
		got = append(got, decode(&w))
	}
	for in := WalkIn(text); in.Next(); {
		in.Skip()
	}
	Lookup(text, "model")
	First(text)
	if !json.Valid(text) || !utf8.Valid(text) {
		return
	}
	var want any
	if json.Unmarshal(text, &want); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Fatalf("%q: %v, want %v", text, got, want)
	}
	object, _ := want.(map[string]any)
	if _, there := object["model"]; there != (Lookup(text, "model") != nil) {
		t.Fatalf("%q: a member is looked up that is not there, or is not found", text)
	}
}

// A walk sees what encoding/json decodes, and comes to an end on everything else.
func TestWalkAsSlowly(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 50_000 {
		var text []byte
		for range rng.IntN(8) {
			text = append(text, pieces[rng.IntN(len(pieces))]...)
		}
		checkWalk(t, text)
		text, _ = json.Marshal(randomValue(rng, 4))
		if rng.IntN(2) == 0 {
			var spread bytes.Buffer
			_ = json.Indent(&spread, text, "", " ")
			text = spread.Bytes()
		}
		checkWalk(t, text)
		checkWalk(t, text[:rng.IntN(len(text)+1)])
	}
}

// FuzzWalk: the same on whatever the fuzzer finds.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"mod\u0065l":"\ud83d\ude00"}],"model":null}`, `{"a`, `{"a":}`, `[[,]`, `{"a" 1}`, `"`, `{"\`, "{\"\x01\":\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkWalk(t, text) })
}

// Of two members of a name the first is found, and in what is no object none is.
func TestLookup(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":{"a":2},"a":3}`: "1", `{"b":{"a":2}}`: "", `{"\u0061": "x"}`: `"x"`, `["a"]`: "", `"a"`: "", ``: "", `{"a":[1, 2] }`: "[1, 2]",
	} {
		if got := Lookup([]byte(text), "a"); string(got) != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Escapes are undone, one after the other, as encoding/json undoes them all.
func TestAppendEscaped(t *testing.T) {
	for _, text := range []string{`\"`, `\\`, `\/`, `\b\f\n\r\t`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ude00\ud83d\u0041`, `\u0000`} {
		var want string
		must.Do(t, json.Unmarshal([]byte(`"`+text+`"`), &want))
		var got []byte
		for rest := []byte(text); len(rest) > 0; {
			size := 1
			if rest[0] == '\\' {
				got, size = AppendEscaped(got, rest)
			} else {
				got = append(got, rest[0])
			}
			rest = rest[size:]
		}
		if string(got) != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, cut := range []string{`\`, `\u`, `\u12`, `\uD83D\u`, `\x`} {
		if _, size := AppendEscaped(nil, []byte(cut)); size < 1 || size > len(cut) {
			t.Errorf("%s: %d bytes", cut, size)
		}
	}
}

// Numbers, words and null are distinguished from all else.
func TestScalars(t *testing.T) {
	for text, want := range map[string]float64{`12`: 12, `-1.5e1`: -15, `"12"`: 0, `true`: 0, `null`: 0, ``: 0, `[1]`: 0} {
		if got := Number([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]bool{`"low"`: true, `"l\u006fw"`: true, `"lower"`: false, `low`: false, ``: false, `"`: false, `["low"]`: false} {
		if got := IsWord([]byte(text), "low"); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

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
