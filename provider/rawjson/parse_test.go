package rawjson

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// membersSlowly returns what a Parser finds, by encoding/json and the passes over text that
// is known to be good.
func membersSlowly(text []byte) []Member {
	if i := SkipSpace(text, 0); json.Valid(text) && text[i] == '{' {
		ms := Members(text[i:], nil)
		for j := range ms {
			ms[j].Start, ms[j].End = ms[j].Start+i, ms[j].End+i
		}
		return ms
	}
	return nil
}

// checkParse holds a parser to encoding/json and to its slow twin.
func checkParse(t *testing.T, p *Parser, text []byte) {
	t.Helper()
	good := p.Parse(text)
	if want := json.Valid(text); good != want {
		t.Fatalf("%q: good is %t, encoding/json says %t", text, good, want)
	}
	if !good {
		return
	}
	if want := membersSlowly(text); len(want) != len(p.Members) || len(want) > 0 && !reflect.DeepEqual(want, p.Members) {
		t.Fatalf("%q: members %v, want %v", text, p.Members, want)
	}
	if p.ASCII() && !utf8.Valid(text) {
		t.Fatalf("%q is not ASCII", text)
	}
	if broken := bytes.ContainsAny(text, "\r\n"); broken != p.Breaks {
		t.Fatalf("%q: line breaks %t", text, p.Breaks)
	}
}

// pieces are what JSON is made of, and what nearly is.
var pieces = strings.Split("{ } [ ] , : \" \\ \\\" \\u \\u00e9 \\n \\x 0 12 -1 1.5e3 01 1. e + true false null tru \"a\" \"b\": \"model\" é \xff \x01 \n \r \t abcdefgh", " ")

// On texts of good pieces in any order, and on good texts with a byte changed, the
// parser is right: about the whole, the members, what is not ASCII and line breaks.
func TestParseAsSlowly(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var p Parser
	for range 50_000 {
		var text []byte
		for range rng.IntN(8) {
			text = append(text, pieces[rng.IntN(len(pieces))]...)
		}
		checkParse(t, &p, text)
		text, _ = json.Marshal(randomValue(rng, 4))
		if rng.IntN(2) == 0 {
			var spread bytes.Buffer
			_ = json.Indent(&spread, text, "", []string{"", " ", "\t"}[rng.IntN(3)])
			text = spread.Bytes()
		}
		checkParse(t, &p, text)
		if len(text) > 0 {
			text[rng.IntN(len(text))] = "{}[],:\"\\ \n\x01\xc3x0"[rng.IntN(14)]
			checkParse(t, &p, text)
		}
	}
}

// randomValue is a value as encoding/json makes it, with strings that end anywhere in
// a word of eight bytes.
func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(8); {
	case n < 3 && depth > 0:
		v := map[string]any{}
		for range rng.IntN(4) {
			v[strings.Repeat("n", rng.IntN(12))] = randomValue(rng, depth-1)
		}
		return v
	case n == 3 && depth > 0:
		return []any{randomValue(rng, depth-1), randomValue(rng, depth-1)}
	case n == 4:
		return rng.NormFloat64()
	case n == 5:
		return []any{true, false, nil}[rng.IntN(3)]
	}
	return strings.Repeat("a", rng.IntN(20)) + []string{"", "\"", "\\", "é", "\n\u2028", "\x7f"}[rng.IntN(6)] + strings.Repeat("b", rng.IntN(20))
}

// Values nest as deep as encoding/json allows, and no deeper: an error, not a crash.
func TestParseNesting(t *testing.T) {
	var p Parser
	for _, brackets := range []string{"[]", `{"a":}`} {
		open, closing := brackets[:len(brackets)-1], brackets[len(brackets)-1:]
		for depth, want := range map[int]bool{MaxNesting: true, MaxNesting + 1: false, 1 << 20: false} {
			text := strings.Repeat(open, depth) + "1" + strings.Repeat(closing, depth)
			if got := p.Parse([]byte(text)); got != want || got != json.Valid([]byte(text)) {
				t.Errorf("%s nested %d deep: good is %t", brackets, depth, got)
			}
		}
	}
}

// FuzzParse: the parser agrees with encoding/json, and its findings with a second look.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"\u00e9\n",true,null]}`, `{"mod\u0065l" : "m" , "b":{"c":{}} } `, "\"\x01\"", `{"a":"12345678\"","b":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkParse(t, new(Parser), text) })
}

// A syntax error names the byte at which the text goes wrong, whatever is wrong with it.
func TestSyntaxErrorsNameTheByte(t *testing.T) {
	for text, want := range map[string]string{
		``: "unexpected end of JSON input at byte 0", `{`: "unexpected end of JSON input at byte 1",
		`{"a"`: "unexpected end of JSON input at byte 4", `{"a":`: "unexpected end of JSON input at byte 5",
		`{"a":1`: "unexpected end of JSON input at byte 6", `"a`: "unexpected end of JSON input at byte 2",
		`"\`: "unexpected end of JSON input at byte 2", `"\u00`: "unexpected end of JSON input at byte 5",
		`[1,`: "unexpected end of JSON input at byte 3", `tru`: "unexpected end of JSON input at byte 3",
		`-`: "unexpected end of JSON input at byte 1", `1.`: "unexpected end of JSON input at byte 2", `1e+`: "unexpected end of JSON input at byte 3",
		`{a`: "unexpected 'a' at byte 2", `{"a" 1`: "unexpected '1' at byte 6", `{"a":1 2`: "unexpected '2' at byte 8",
		`{"a":1,}`: "unexpected '}' at byte 8", `[1 2]`: "unexpected '2' at byte 4", `[,]`: "unexpected ',' at byte 2",
		`trué`: "unexpected 'é' at byte 4", `01`: "unexpected '1' at byte 2", `-a`: "unexpected 'a' at byte 2",
		`1.x`: "unexpected 'x' at byte 3", `1ex`: "unexpected 'x' at byte 3", `{} x`: "unexpected 'x' at byte 4",
		`"\q"`: "unexpected 'q' at byte 3", `"\u0g00"`: "unexpected 'g' at byte 5", "\"a\tb\"": `unexpected '\t' at byte 3`,
		"\"long enough for eight at a time \x01 and on\"": `unexpected '\x01' at byte 34`,
	} {
		var p Parser
		if p.Parse([]byte(text)) {
			t.Errorf("%q is taken for JSON", text)
		} else if got := p.SyntaxError([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The levels around a text count as its own.
func TestParseCountsWhatIsAround(t *testing.T) {
	for deep, want := range map[int]bool{MaxNesting - 2: true, MaxNesting - 1: false} {
		text := []byte(strings.Repeat("[", deep) + strings.Repeat("]", deep))
		p := Parser{Skim: true, Around: 2}
		if p.Parse(text) != want {
			t.Errorf("%d levels within two: %t", deep, !want)
		}
	}
}
