package prompts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// outcome is all that a reader says of a line.
type outcome struct {
	Req Request
	Bad string
	Key string // of a bad line
	ID  string // and its line, as an errors file has it
}

func outcomeOf(req Request, err error) outcome {
	var bad *LineError
	if errors.As(err, &bad) {
		return outcome{Bad: bad.Error(), Key: bad.Key(), ID: LineID(bad.Line)}
	}
	if err != nil {
		return outcome{Bad: err.Error()}
	}
	return outcome{Req: req}
}

func outcomes(r *Reader) (out []outcome) {
	for req, err := range r.All() {
		out = append(out, outcomeOf(req, err))
	}
	return out
}

// someLines are prompt lines of which many are alike, or take each other's ids.
func someLines(rng *rand.Rand, n int) []byte {
	kinds := []func() string{
		func() string { return fmt.Sprintf(`{"prompt":"q%d"}`, rng.IntN(3)) },
		func() string { return fmt.Sprintf(`{"prompt" : "q%d"}`, rng.IntN(3)) },
		func() string { return fmt.Sprintf(`{"id":"i%d","prompt":"q%d"}`, rng.IntN(4), rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"id":"line-%06d","prompt":"q"}`, 1+rng.IntN(n+3)) },
		func() string { return fmt.Sprintf(`{"id":%d,"prompt":"é☃"}`, rng.IntN(9)) },
		func() string { return fmt.Sprintf(`{"custom_id":"b%d","body":{"messages":[]}}`, rng.IntN(9)) },
		func() string {
			return fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}],"metadata":{"n":%d}}`, rng.IntN(2), rng.IntN(2))
		},
		func() string { return fmt.Sprintf(`{x%d`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"prompt":"refused","n":%d}`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"id":"r%d","prompt":"refused"}`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"prompt":"foreign","n":%d}`, rng.IntN(2)) },
		func() string { return `{"prompt":"` + strings.Repeat("long ", 10+rng.IntN(60)) + `"}` },
		func() string { return "" },
		func() string { return " \t" },
		func() string { return "\xff" },
	}
	var text bytes.Buffer
	if rng.IntN(3) == 0 {
		text.WriteString("\xEF\xBB\xBF")
	}
	for i := range n {
		text.WriteString(kinds[rng.IntN(len(kinds))]())
		if i < n-1 || rng.IntN(2) == 0 {
			text.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
		}
	}
	return text.Bytes()
}

// takesSome is a provider that cannot be asked everything.
func takesSome(r *Request) error {
	switch {
	case bytes.Contains(r.Body, []byte("refused")):
		return errors.New("not this one")
	case bytes.Contains(r.Body, []byte("foreign")):
		return &provider.Untranslatable{Field: "n", Dialect: "other", Why: "has no place there"}
	}
	return nil
}

// sections reads a text cut behind some of its line feeds, each piece by a reader of its own.
func sections(text []byte, cut func() bool, each func(piece []byte, s *Section)) {
	line, from := 1, 0
	for at, b := range text {
		if b != '\n' || !cut() {
			continue
		}
		each(text[from:at+1], &Section{FirstLine: line})
		line += bytes.Count(text[from:at+1], []byte{'\n'})
		from = at + 1
	}
	each(text[from:], &Section{FirstLine: line})
}

// Whatever a file holds and wherever it is cut, its sections give the requests, ids, keys and
// complaints that one reader of the whole gives, once they know the marks that it noted.
func TestSectionsGiveWhatTheWholeGives(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 14))
		text := someLines(rng, 1+rng.IntN(40))
		checkSections(t, text, Format(rng.IntN(2)), rng)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzSections: the same of any file, JSON or text, wherever it is cut.
func FuzzSections(f *testing.F) {
	f.Add([]byte("{\"prompt\":\"a\"}\n{\"prompt\":\"a\"}\r\n\n{x\n{x"), uint64(1), false)
	f.Add([]byte("\xEF\xBB\xBF{\"id\":\"line-000002\",\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n{\"id\":\"line-000002\",\"prompt\":\"c\"}"), uint64(2), false)
	f.Add([]byte("a\n\x00\na\n\xff\na"), uint64(3), true)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, plain bool) {
		format := FormatJSONL
		if plain {
			format = FormatText
		}
		if !isPacked(text) { // that is no input to be cut
			checkSections(t, text, format, rand.New(rand.NewPCG(seed, 14)))
		}
	})
}

func checkSections(t *testing.T, text []byte, format Format, rng *rand.Rand) {
	t.Helper()
	cfg := Config{Name: "in", DefaultModel: "m", MaxLine: 200, Takes: takesSome, Format: format}
	want := outcomes(NewReader(bytes.NewReader(text), cfg))
	cut := func() bool { return rng.IntN(3) == 0 }
	marks := map[int]Mark{}
	noting := cfg
	noting.NoKeys, noting.Passing, noting.Plain = rng.IntN(2) == 0, true, true
	noting.Note = func(line int, m Mark) { marks[line] = m }
	outcomes(NewReader(bytes.NewReader(text), noting))
	var got []outcome
	sections(text, cut, func(piece []byte, s *Section) {
		marked := cfg
		marked.Section, s.Marks = s, func(line int) Mark { return marks[line] }
		got = append(got, outcomes(NewReader(bytes.NewReader(piece), marked))...)
	})
	if i := firstDifference(got, want); i >= 0 {
		t.Errorf("%q:\n got %+v\nwant %+v", text, at(got, i), at(want, i))
	}
}

func firstDifference(a, b []outcome) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !reflect.DeepEqual(a[i], b[i]) {
			return i
		}
	}
	return -1
}

func at(all []outcome, i int) any {
	if i < len(all) {
		return all[i]
	}
	return "nothing"
}

// Lines are numbered over all files of an input, and complaints name the line of the file.
func TestSectionBelowOtherFiles(t *testing.T) {
	marks := func(line int) Mark {
		return map[int]Mark{102: {Taken: true, By: 7, In: "other.jsonl"}, 103: {Taken: true}}[line]
	}
	text := "\xEF\xBB\xBF{\"prompt\":\"a\"}\n{\"id\":\"a\",\"prompt\":\"b\"}\n{\"id\":\"b\",\"prompt\":\"b\"}\n[\n"
	got := outcomes(NewReader(strings.NewReader(text), Config{Name: "in", DefaultModel: "m", Section: &Section{Above: 100, Marks: marks}}))
	if got[0].Req.Line != 101 || got[0].Req.ID != "line-000101" {
		t.Errorf("%+v", got[0].Req)
	}
	for i, want := range []string{
		`in:2: custom_id "a" is already used on line 7 of other.jsonl: give each line its own id`,
		`in:3: custom_id "b" is already used on an earlier line: give each line its own id`,
		`in:4: not JSON: unexpected end of JSON input at byte 1: fix the line or remove it`,
	} {
		if bad := got[i+1]; bad.Bad != want || bad.ID != LineID(102+i) {
			t.Errorf("got  %s, %s\nwant %s", bad.Bad, bad.ID, want)
		}
	}
}

// A section is taken as it is, though it should begin as a packed file does.
func TestSectionIsNotPacked(t *testing.T) {
	got := outcomes(NewReader(strings.NewReader("\x1f\x8b\n{\"prompt\":\"a\"}\n"), Config{DefaultModel: "m", Section: &Section{FirstLine: 2}}))
	if len(got) != 2 || got[1].Req.Line != 3 {
		t.Errorf("%+v", got)
	}
}

// A CSV can be cut behind any row, though rows have line feeds in them: Offset says where.
func TestSectionsOfCSV(t *testing.T) {
	text := "\xEF\xBB\xBFid,prompt\r\n1,\"two\nlines\"\n\n2,b\n,\"x\ny\nz\"\n\"open\n2,c\n"
	cfg := Config{Name: "in", DefaultModel: "m", Format: FormatCSV}
	want := outcomes(NewReader(strings.NewReader(text), cfg))
	whole := NewReader(strings.NewReader(text), cfg)
	type place struct {
		offset int64
		line   int
	}
	ends := []place{}
	for {
		_, err := whole.Next()
		if err == io.EOF { //nolint:errorlint // what Next promises
			break
		}
		ends = append(ends, place{whole.Offset(), whole.Line()})
	}
	if len(ends) != len(want) || ends[len(ends)-1].offset != int64(len(text)) {
		t.Fatalf("%v of %d bytes, want %d rows", ends, len(text), len(want))
	}
	for i, end := range ends[:len(ends)-1] {
		cfg.Section = &Section{FirstLine: end.line + 1, Columns: whole.Columns()}
		got := outcomes(NewReader(strings.NewReader(text[end.offset:]), cfg))
		if !reflect.DeepEqual(got, want[i+1:]) {
			t.Errorf("from %d on:\n got %+v\nwant %+v", end.offset, got, want[i+1:])
		}
	}
}

// Offset returns the place where the next line begins, whatever the line's length.
func TestOffset(t *testing.T) {
	long := `{"prompt":"` + strings.Repeat("a", 70_000) + `"}`
	text := "\n{\"prompt\":\"a\"}\r\n" + long + "\n{x\n" + strings.Repeat("b", 200_000) + "\n{\"prompt\":\"b\"}"
	r := NewReader(strings.NewReader(text), Config{DefaultModel: "m", MaxLine: 100_000})
	got := []int64{}
	for range r.All() {
		got = append(got, r.Offset())
	}
	want := []int64{17, 17 + int64(len(long)) + 1}
	want = append(want, want[1]+3, want[1]+3+200_001, int64(len(text)))
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A reader notes of several files which line of all of them has an id, and of lines like no other nothing.
func TestMarksAreNoted(t *testing.T) {
	got := []string{}
	files := []string{"{\"id\":\"a\",\"prompt\":\"1\"}\n{x\n{\"id\":\"c\",\"prompt\":\"2\"}\n", "{\"id\":\"a\",\"prompt\":\"3\"}\n{x\n{\"prompt\":\"c\"}\n{\"prompt\":\"c\"}\n"}
	more := func() (File, error) {
		files = files[1:]
		if len(files) == 0 {
			return File{}, io.EOF
		}
		return File{Name: "second", In: strings.NewReader(files[0])}, nil
	}
	note := func(line int, m Mark) { got = append(got, fmt.Sprintf("%d %+v", line, m)) }
	outcomes(NewReader(strings.NewReader(files[0]), Config{Name: "first", DefaultModel: "m", More: more, Note: note, NoKeys: true}))
	want := []string{"4 {Nth:0 Taken:true By:1 In:}", "5 {Nth:1 Taken:false By:0 In:}", "7 {Nth:1 Taken:false By:0 In:}"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
