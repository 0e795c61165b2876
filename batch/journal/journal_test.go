package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/must"
)

// journalLine is the output line of an item with that id, a failed one if code is given.
func journalLine(id, code string) string {
	l := LineOf(id, Headrace{Line: 1, Model: "m", Key: keyOf(id)})
	l.Response = &Response{StatusCode: 200, Body: []byte(`{"text":"said {\"headrace\"} \n"}`)}
	if code != "" {
		l.Error = &Failure{Code: code}
	}
	return string(AppendLine(nil, &l))
}

func keyOf(id string) string {
	return new(keys.Maker).Given("/v1/chat/completions", []byte(`{}`), []byte(id)).String()
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

// A run that goes on knows what has ended, and writes behind it.
func TestJournalGoesOn(t *testing.T) {
	before := journalLine("a", "") + journalLine("b", "")
	path := writeFile(t, before)
	j, err := ReadJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if j.Lines != 2 || j.Torn != 0 || j.Size != int64(len(before)) || j.Keys.Len() != 2 {
		t.Errorf("%+v", j)
	}
	if !j.Keys.Has(keyOf("a")) || !j.Keys.Has(keyOf("b")) || j.Keys.Has(keyOf("c")) || j.Keys.Has("no key") {
		t.Error("the wrong keys have ended")
	}
	w := must.Get(j.Append())(t)
	if w.Name != path || w.Size != int64(len(before)) {
		t.Errorf("%s goes on behind %d bytes", w.Name, w.Size)
	}
	_, err = w.File.WriteString(journalLine("c", ""))
	must.Do(t, errors.Join(err, w.Close()))
	if got := textOf(t, path); got != before+journalLine("c", "") {
		t.Errorf("the file holds %q", got)
	}
}

// A last line that is torn, at whatever byte, is cut off, and its item has not ended.
func TestTornLineAtEveryByte(t *testing.T) {
	whole, last := journalLine("a", ""), journalLine("b", "")
	for n := range len(last) - 1 { // one byte less is whole: only its line feed is missing
		path := writeFile(t, whole+last[:n])
		j, err := ReadJournal(path)
		if err != nil {
			t.Fatalf("torn after %d bytes: %v", n, err)
		}
		if j.Torn != int64(n) || j.Keys.Has(keyOf("b")) || !j.Keys.Has(keyOf("a")) {
			t.Fatalf("torn after %d bytes: %+v", n, j)
		}
		if got := textOf(t, path); got != whole+last[:n] {
			t.Fatal("reading has changed the file")
		}
		w := must.Get(j.Append())(t)
		if err := w.Close(); err != nil || textOf(t, path) != whole {
			t.Fatalf("torn after %d bytes: %v, then %q", n, err, textOf(t, path))
		}
	}
}

// The only line of a file may be torn too, as long as its beginning says whose it is;
// and zeros may follow a whole one, or the beginning of one.
func TestTornLineAlone(t *testing.T) {
	one := journalLine("a", "")
	for _, text := range []string{one[:len(opening)], one[:len(one)-2], one + "\x00\x00\x00", one + one[:20] + "\x00\x00"} {
		path := writeFile(t, text)
		j, err := ReadJournal(path)
		if err != nil {
			t.Fatalf("%q: %v", lines.Clip(text), err)
		}
		w := must.Get(j.Append())(t)
		_ = w.Close()
		if got := textOf(t, path); j.Torn == 0 || got != text[:j.Size] {
			t.Errorf("%q became %q", lines.Clip(text), got)
		}
	}
}

// What each line begins with is what is looked for where a line is torn.
func TestOpening(t *testing.T) {
	text := journalLine("a", "")
	want := `{"id":"hr-` + keyOf("a")[:idDigits] + `","custom_id":"`
	if text[:len(opening)] != want || !mayBeOurs([]byte(want)) {
		t.Errorf("lines begin %q", text[:len(opening)])
	}
	for n := range len(want) {
		if !mayBeOurs([]byte(want[:n])) {
			t.Errorf("a line may begin %q", want[:n])
		}
		other := []byte(want)
		if other[n] ^= 0x40; mayBeOurs(other) || mayBeOurs(other[:n+1]) {
			t.Errorf("no line begins %q", other[:n+1])
		}
	}
}

// A last line that lacks only its line feed, as editors and cut | paste leave it, is
// whole: its item has ended, and what comes next begins a line of its own.
func TestLastLineWithoutLineFeed(t *testing.T) {
	for _, before := range []string{"", journalLine("a", "")} {
		text := before + journalLine("b", "")
		path := writeFile(t, text[:len(text)-1])
		j, err := ReadJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if j.Torn != 0 || !j.NoFeed || j.Size != int64(len(text)-1) || j.Lines != strings.Count(text, "\n") || !j.Keys.Has(keyOf("b")) {
			t.Errorf("%+v", j)
		}
		if got := textOf(t, path); got != text[:len(text)-1] {
			t.Error("reading has changed the file")
		}
		w := must.Get(j.Append())(t)
		if w.Size != int64(len(text)) {
			t.Errorf("goes on behind %d of %d bytes", w.Size, len(text))
		}
		_, err = w.File.WriteString(journalLine("c", ""))
		must.Do(t, errors.Join(err, w.Close()))
		if got := textOf(t, path); got != text+journalLine("c", "") {
			t.Errorf("the file holds %q", got)
		}
	}
	text := journalLine("a", "invalid")
	if _, err := ReadJournal(writeFile(t, text[:len(text)-1])); !errors.Is(err, ErrOtherKind) {
		t.Errorf("a failed item without its line feed: %v", err)
	}
}

// Whatever goes over the lines once more finds the last one too.
func TestLastLineWithoutLineFeedIsRewritten(t *testing.T) {
	text := journalLine("a", "invalid") + journalLine("b", "invalid") + journalLine("a", "timeout")
	path := writeFile(t, text[:len(text)-1])
	dropped, err := drop(path, new(KeySet))
	if err != nil || dropped != 1 {
		t.Fatalf("%d, %v", dropped, err)
	}
	if got := textOf(t, path); got != text[len(journalLine("a", "invalid")):] {
		t.Errorf("the file holds %q", got)
	}
}

// What headrace has not written is refused, and so is what it has written and
// someone has changed. The file is not touched.
func TestOtherAndDamagedFiles(t *testing.T) {
	good := journalLine("a", "")
	other := strings.Replace(good, `"hr-`, `"batch_req_`, 1)
	tests := []struct {
		name, text string
		want       error
	}{
		{"notes", "buy milk\n", ErrForeign},
		{"notes without line feed", "buy milk", ErrForeign},
		{"zeros", "\x00\x00\x00", ErrForeign},
		{"a brace", "{", ErrForeign},
		{"a prompt file without line feed", `{"id":"p1","prompt":"hi"}`, ErrForeign},
		{"a prompt whose id begins like ours", `{"id":"hr-2024-survey","prompt":"hi"}`, ErrForeign},
		{"a brace and an id", `{"id":"hr-`, ErrForeign},
		{"another program's ids", `{"id":"hr-0123456789abcdef01234567","name":"Ann"}`, ErrForeign},
		{"capital digits", `{"id":"hr-0123456789ABCDEF01234567","custom_id":"a`, ErrForeign},
		{"less than the whole beginning", good[:len(opening)-1], ErrForeign},
		{"a prompt after ours without line feed", good + `{"id":"hr-2024-survey","prompt":"hi"}`, ErrDamaged},
		{"a prompt file", `{"prompt":"hi"}` + "\n", ErrForeign},
		{"another batch's output", other, ErrForeign},
		{"an empty line first", "\n" + good, ErrDamaged},
		{"notes after ours", good + "buy milk\n", ErrDamaged},
		{"notes after ours without line feed", good + "buy milk", ErrDamaged},
		{"a cut line in the middle", good[:40] + "\n" + good, ErrDamaged},
		{"a cut line further on", good + good[:40] + "\n" + good, ErrDamaged},
		{"no error field", good + strings.Replace(good, `"error"`, `"errors"`, 1), ErrDamaged},
		{"no headrace field", good + strings.Replace(good, `"headrace"`, `"headgate"`, 1), ErrDamaged},
		{"a short key", good + strings.Replace(good, keyOf("a"), "abc", 1), ErrDamaged},
		{"zeros over the first line", strings.Repeat("\x00", len(good)-1) + "\n" + good, ErrDamaged},
		{"a damaged line and no other", good[:len(opening)] + "\x00" + good[len(opening)+1:], ErrDamaged},
		{"a line of ours far behind those of others", strings.Repeat("milk\n", lookAhead+1) + good, ErrForeign},
		{"failed items", journalLine("a", "invalid"), ErrOtherKind},
		{"failed items behind a damaged line", "\n" + journalLine("a", "invalid"), ErrDamaged},
		{"failed items later", good + journalLine("b", "invalid"), ErrOtherKind},
	}
	for _, tt := range tests {
		path := writeFile(t, tt.text)
		if _, err := ReadJournal(path); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if textOf(t, path) != tt.text {
			t.Errorf("%s: the file was changed", tt.name)
		}
	}
}

// A flipped bit in what ties a line to its item is found, wherever it is.
func TestFlippedBitsInIDAndKey(t *testing.T) {
	good := journalLine("a", "")
	text := good + journalLine("b", "")
	for _, at := range []string{`"id":"hr-`, `"key":"`} {
		first := len(good) + strings.Index(text[len(good):], at) + len(at)
		for i := first; i < first+idDigits; i++ {
			flipped := []byte(text)
			flipped[i] ^= 1
			if _, err := ReadJournal(writeFile(t, string(flipped))); !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d of %s: %v", i-first, at, err)
			}
		}
	}
	flipped := []byte(text)
	flipped[len(good)+strings.Index(text[len(good):], "said")] ^= 0x80
	if _, err := ReadJournal(writeFile(t, string(flipped))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte that is not UTF-8: %v", err)
	}
}

// An errors file holds failed items and nothing else.
func TestErrorsJournal(t *testing.T) {
	j, err := ReadErrorsJournal(writeFile(t, journalLine("a", "invalid")))
	if err != nil || !j.Keys.Has(keyOf("a")) {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err := ReadErrorsJournal(writeFile(t, journalLine("a", ""))); !errors.Is(err, ErrOtherKind) {
		t.Errorf("results as errors: %v", err)
	}
}

// A journal that is not there is empty; it is made by Append, by AppendLazily
// with its first line.
func TestNewJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	j, err := ReadJournal(path)
	if err != nil || j.Lines != 0 || j.Keys.Len() != 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	w := must.Get(j.AppendLazily())(t)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there before it is needed: %v", err)
	}
	_ = w.Close()
	if w, err = j.Append(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A lazy journal with a torn line is put right at once: there may be no further line.
func TestLazyJournalCutsAtOnce(t *testing.T) {
	whole := journalLine("a", "invalid")
	path := writeFile(t, whole+whole[:20])
	j := must.Get(ReadErrorsJournal(path))(t)
	w := must.Get(j.AppendLazily())(t)
	_ = w.Close()
	if textOf(t, path) != whole {
		t.Error("the torn line is still there")
	}
}

// A file that another run writes to between the reading and the writing is left alone.
func TestJournalChangedInBetween(t *testing.T) {
	path := writeFile(t, journalLine("a", ""))
	j := must.Get(ReadJournal(path))(t)
	now := journalLine("a", "") + journalLine("b", "")
	must.Do(t, os.WriteFile(path, []byte(now), 0o600))
	if _, err := j.Append(); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if textOf(t, path) != now {
		t.Error("the file was changed")
	}
}

// What Create refuses is no journal either: a folder, or a file of this run.
func TestJournalElsewhere(t *testing.T) {
	path := writeFile(t, journalLine("a", ""))
	if _, err := ReadJournal(path, path); !errors.Is(err, ErrSameFile) {
		t.Errorf("the input as output: %v", err)
	}
	if _, err := ReadJournal(filepath.Dir(path)); !errors.Is(err, ErrDirectory) {
		t.Errorf("a folder: %v", err)
	}
}

// A flipped bit anywhere in a file, in whatever byte, is refused or harmless: a
// last line taken for torn is run again, and no key but those that were written is
// ever taken for ended.
func TestFlippedBitsAnywhere(t *testing.T) {
	text := journalLine("a", "") + journalLine("b", "") + journalLine("c", "")
	dir := t.TempDir()
	for at := range len(text) {
		for _, bit := range []int{at % 8, 5} { // 5 makes capitals of letters
			flipped := []byte(text)
			flipped[at] ^= 1 << bit
			path := filepath.Join(dir, "out")
			write(t, path, string(flipped))
			j, err := ReadJournal(path)
			if at < len(text)-1 {
				if !errors.Is(err, ErrDamaged) {
					t.Fatalf("bit %d of byte %d: %v", bit, at, err)
				}
				continue
			}
			if err != nil || j.Lines != 2 || j.Keys.Has(keyOf("c")) || j.Torn == 0 {
				t.Fatalf("bit %d of the last line feed: %v, %+v", bit, err, j)
			}
		}
	}
}

// Lines that were simulated are counted, wherever a model speaks of it.
func TestSimulatedLinesAreCounted(t *testing.T) {
	made := func(id string, simulated bool) string {
		l := LineOf(id, Headrace{Line: 1, Model: `"simulated":true`, Key: keyOf(id), Simulated: simulated})
		l.Response = &Response{StatusCode: 200, Body: []byte(`{"headrace":{"simulated":true}}`)}
		return string(AppendLine(nil, &l))
	}
	text := made("a", true) + made("b", false) + made("c", true)
	j, err := ReadJournal(writeFile(t, text[:len(text)-1]))
	if err != nil || j.Lines != 3 || j.Simulated != 2 {
		t.Errorf("%+v, %v", j, err)
	}
	p, err := ReadProgress(writeFile(t, text), filepath.Join(t.TempDir(), "none"))
	if err != nil || p.Done != 3 || p.Simulated != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// An item that has two lines is named.
func TestRepeatedLines(t *testing.T) {
	j, err := ReadJournal(writeFile(t, journalLine("a", "")+journalLine("b", "")+journalLine("a", "")+journalLine("b", "")))
	if err != nil || j.Repeated != 2 || j.RepeatedLine != 3 || j.Keys.Len() != 2 {
		t.Errorf("%+v, %v", j, err)
	}
}

// FuzzResume: whatever a file holds, reading it ends, and what it calls whole and
// torn is the file.
func FuzzResume(f *testing.F) {
	f.Add([]byte(journalLine("a", "") + journalLine("b", "")))
	f.Add([]byte(journalLine("a", "x") + "{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := writeFile(t, string(text))
		j, err := ReadJournal(path)
		if err == nil && j.exists && j.Size+j.Torn != int64(len(text)) || err == nil && j.NoFeed && j.Torn > 0 {
			t.Errorf("%d and %d of %d bytes", j.Size, j.Torn, len(text))
		}
	})
}

// childEnv names what a test binary that was started by a test is to do instead
// of the tests.
const childEnv = "JOURNAL_TEST_CHILD"

var children = map[string]func() int{}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}
