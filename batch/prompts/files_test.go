package prompts

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// files are an input of several files: the first, and a Config that opens the others.
func files(cfg Config, all ...File) (io.Reader, Config) {
	cfg.Name, cfg.Format = all[0].Name, all[0].Format
	next := 1
	cfg.More = func() (File, error) {
		if next == len(all) {
			return File{}, io.EOF
		}
		next++
		return all[next-1], nil
	}
	return all[0].In, cfg
}

func jsonl(name, text string) File { return File{Name: name, In: strings.NewReader(text)} }

// Several files are one input: lines are numbered on, complaints and requests name the file and the line in it,
// alike lines have keys of their own, and a table in between has its own header.
func TestSeveralFilesAreOneInput(t *testing.T) {
	const same = `{"prompt":"p"}` + "\n"
	in, cfg := files(Config{DefaultModel: "m"},
		jsonl("a.jsonl", "\xEF\xBB\xBF"+same+"\n"+same[:len(same)-1]),
		File{Name: "b.csv", In: strings.NewReader("id,prompt\nx,p\n"), Format: FormatCSV},
		jsonl("empty.jsonl", ""),
		File{Name: "c.csv", In: strings.NewReader("prompt,row\np,7\n,\n"), Format: FormatCSV},
		jsonl("d.jsonl", "no\n"+same))
	var got []string
	keys := map[string]bool{}
	r := NewReader(in, cfg)
	for req, err := range r.All() {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		keys[req.Key] = true
		got = append(got, fmt.Sprintf("%s %d %s:%d %s", req.ID, req.Line, req.File, req.FileLine, req.Metadata))
	}
	want := []string{
		"line-000001 1 a.jsonl:1 ", "line-000003 3 a.jsonl:3 ", "x 5 b.csv:2 ", `line-000007 7 c.csv:2 {"row":"7"}`,
		"c.csv:3: ", "d.jsonl:1: not JSON: ", "line-000010 10 d.jsonl:2 ",
	}
	if !slices.EqualFunc(got, want, func(got, want string) bool {
		return got == want || strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)
	}) {
		t.Errorf("%q", got)
	}
	if len(keys) != 5 || r.Line() != 10 {
		t.Errorf("%d keys, %d lines", len(keys), r.Line())
	}
}

// An only file has no names in its requests, and a limit counts the items of all files.
func TestTheLimitIsOfAllFiles(t *testing.T) {
	const two = `{"prompt":"p"}` + "\n" + `{"prompt":"p"}` + "\n"
	in, cfg := files(Config{DefaultModel: "m", Limit: 3}, jsonl("a", two), jsonl("b", two))
	n := 0
	for range NewReader(in, cfg).All() {
		n++
	}
	req, err := NewReader(strings.NewReader(two), Config{DefaultModel: "m", Name: "a"}).Next()
	if n != 3 || err != nil || req.File != "" || req.FileLine != 0 {
		t.Errorf("%d items, %q:%d, %v", n, req.File, req.FileLine, err)
	}
}

// An id is used once in all files: the complaint names both files and both lines, also where the reader
// remembers no line, and for an id that a line would get by its number.
func TestAnIDIsUsedOnceInAllFiles(t *testing.T) {
	var many strings.Builder
	for n := range NamedIDs {
		many.WriteString(`{"prompt":"p","id":"` + strconv.Itoa(n) + `"}` + "\n")
	}
	open := func() (io.Reader, Config) {
		return files(Config{DefaultModel: "m"},
			jsonl("a", many.String()+`{"prompt":"p","id":"late"}`+"\n"+`{"prompt":"p","id":"0"}`+"\n"+`{"prompt":"p"}`+"\n"),
			jsonl("b", "\n"+`{"prompt":"p","id":"late"}`+"\n"+`{"prompt":"p","id":"7"}`+"\n"+`{"prompt":"p","id":"`+LineID(NamedIDs+3)+`"}`+"\n"))
	}
	in, cfg := open()
	var bad []*LineError
	for _, err := range NewReader(in, cfg).All() {
		if one, is := errors.AsType[*LineError](err); is {
			bad = append(bad, one)
		}
	}
	in, cfg = open()
	must.Do(t, FirstLines(in, cfg, bad))
	want := []string{
		fmt.Sprintf(`a:%d: custom_id "0" is already used on line 1`, NamedIDs+2),
		fmt.Sprintf(`b:2: custom_id "late" is already used on line %d of a`, NamedIDs+1),
		`b:3: custom_id "7" is already used on line 8 of a`,
		fmt.Sprintf(`b:4: custom_id %q is already used on line %d of a`, LineID(NamedIDs+3), NamedIDs+3),
	}
	if !slices.EqualFunc(bad, want, func(e *LineError, want string) bool { return strings.HasPrefix(e.Error(), want) }) {
		t.Errorf("%v", bad)
	}
}

// A file that cannot be opened ends the input, with the error of the function that opens it.
func TestAFileThatCannotBeOpened(t *testing.T) {
	broken := errors.New("b: permission denied")
	cfg := Config{DefaultModel: "m", More: func() (File, error) { return File{}, broken }}
	r := NewReader(strings.NewReader(`{"prompt":"p"}`), cfg)
	_, first := r.Next()
	_, err := r.Next()
	if _, again := r.Next(); first != nil || !errors.Is(err, broken) || !errors.Is(again, broken) {
		t.Error(first, err, again)
	}
}
