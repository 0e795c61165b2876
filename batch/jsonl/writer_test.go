package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// numberedLine is a line that can be told from others.
func numberedLine(n int) *Line {
	l := full()
	l.Headrace.Line = n
	return &l
}

// recorder notes each write and fails once it has taken room bytes.
type recorder struct {
	writes []string
	room   int
	err    error
}

func (r *recorder) Write(p []byte) (int, error) {
	n := min(len(p), r.room)
	r.room -= n
	r.writes = append(r.writes, string(p[:n]))
	if n < len(p) {
		return n, r.err
	}
	return n, nil
}

// Each write to the file below begins and ends with a line, and none waits longer
// than for 64 others.
func TestWritesAreWholeLines(t *testing.T) {
	rec := &recorder{room: 1 << 30}
	w := NewWriter(rec, "out")
	for n := range 3*flushLines + 1 {
		if err := w.Write(numberedLine(n)); err != nil {
			t.Fatal(err)
		}
		if got := len(rec.writes); got != (n+1)/flushLines {
			t.Fatalf("%d writes after %d lines", got, n+1)
		}
	}
	if err := w.Close(); err != nil || w.Lines() != 3*flushLines+1 {
		t.Fatalf("%d lines, %v", w.Lines(), err)
	}
	for _, text := range rec.writes {
		if !strings.HasPrefix(text, `{"id"`) || !strings.HasSuffix(text, "}\n") {
			t.Errorf("a write is torn: %.20q … %q", text, text[len(text)-5:])
		}
	}
	if len(rec.writes) != 4 {
		t.Errorf("%d writes, want 4", len(rec.writes))
	}
}

// A large line does not wait for others.
func TestLargeLinesAreFlushed(t *testing.T) {
	rec := &recorder{room: 1 << 30}
	w := NewWriter(rec, "out")
	l := full()
	l.Response.Body = []byte(`"` + strings.Repeat("a", flushBytes) + `"`)
	if err := w.Write(&l); err != nil || len(rec.writes) != 1 {
		t.Errorf("%d writes, %v", len(rec.writes), err)
	}
}

// The first failure stays, names the file and how much it lost, and nothing is
// written after it.
func TestWriteErrorsStay(t *testing.T) {
	full := errors.New("no space left on device")
	for _, rec := range []*recorder{{room: 10, err: full}, {room: 10, err: nil}} {
		want := rec.err
		if want == nil {
			want = io.ErrShortWrite
		}
		w := NewWriter(rec, "results.jsonl")
		_, _ = w.Write(numberedLine(1)), w.Write(numberedLine(2))
		first := w.Flush()
		if !errors.Is(first, want) || !strings.Contains(first.Error(), "write results.jsonl: the last 2 lines are not saved") {
			t.Fatalf("Flush: %v", first)
		}
		rec.room = 1 << 30
		for _, err := range []error{w.Write(numberedLine(3)), w.Flush(), w.Close(), w.Close()} {
			if err != first { //nolint:errorlint // the very same error
				t.Errorf("after the failure: %v", err)
			}
		}
		if len(rec.writes) != 1 {
			t.Errorf("%d writes, want no further one", len(rec.writes))
		}
	}
}

// A file is made for its owner alone and holds all lines after Close; a closed
// writer refuses more.
func TestCreateWritesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if err := w.Write(numberedLine(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 100 {
		t.Errorf("%d lines, %v", strings.Count(string(text), "\n"), err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := w.Write(numberedLine(1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

// Nothing that exists is overwritten: not a file that holds something, not a
// directory, not the input by any of its names. An empty file is taken.
func TestCreateSparesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("full"), "x")
	write(t, at("empty"), "")
	if err := errors.Join(os.Symlink(at("empty"), at("link")), os.Link(at("full"), at("hard"))); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path, other string
		want        error
	}{
		{at("full"), "", ErrNotEmpty},
		{dir, "", ErrDirectory},
		{at("full"), at("full"), ErrSameFile},
		{at("hard"), at("full"), ErrSameFile},
		{at("link"), at("empty"), ErrSameFile},
		{at("new"), dir + "/./new", ErrSameFile},
		{at("none/results"), "", fs.ErrNotExist},
		{at("full/results"), "", nil},
		{at("empty"), at("full"), nil},
	}
	for _, tt := range tests {
		for name, create := range map[string]func(string, ...string) (*Writer, error){"Create": Create, "CreateLazily": CreateLazily} {
			w, err := create(tt.path, "-", tt.other)
			if name == "CreateLazily" && tt.want == fs.ErrNotExist { //nolint:errorlint // a table's own value
				continue // it looks for the directory with the first line
			}
			if tt.want != nil && (!errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.path)) {
				t.Errorf("%s(%s): %v, want %v", name, tt.path, err, tt.want)
			}
			if tt.want == nil && (err != nil) != (tt.path == at("full/results")) {
				t.Errorf("%s(%s): %v", name, tt.path, err)
			}
			if err == nil {
				_ = w.Close()
			}
		}
	}
	if text, _ := os.ReadFile(at("full")); string(text) != "x" {
		t.Errorf("the full file now holds %q", text)
	}
}

// A lazy file is there if, and only if, a line was written; one that came into
// being meanwhile is spared.
func TestLazyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e")
	w, err := CreateLazily(path)
	if err = errors.Join(err, w.Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file without lines: %v", err)
	}
	w, _ = CreateLazily(path)
	late, _ := CreateLazily(path)
	if err := errors.Join(w.Write(numberedLine(1)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := late.Write(numberedLine(2)); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("the second writer: %v", err)
	}
}

// A write that fails in the middle of a line leaves a file that ends with a whole one.
func TestTornLineIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	w, err := Create(path)
	if err = errors.Join(err, w.Write(numberedLine(1)), w.Flush()); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	w.out = &tearing{w.file}
	if err := errors.Join(w.Write(numberedLine(2)), w.Flush()); err == nil {
		t.Fatal("a torn write went unseen")
	}
	_ = w.Close()
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("the file ends with %q", after[len(before):])
	}
}

// tearing writes half of what it is given, as a full disk does.
type tearing struct{ to io.Writer }

func (w *tearing) Write(p []byte) (int, error) {
	n, _ := w.to.Write(p[:len(p)/2])
	return n, errors.New("no space left on device")
}

// What is not a regular file, such as /dev/null, is written and closed like one.
func TestDevicesHaveNoDisk(t *testing.T) {
	w, err := Create(os.DevNull)
	if err = errors.Join(err, w.Write(numberedLine(1)), w.Close()); err != nil {
		t.Error(err)
	}
}

// The errors of an output go beside it, under a name that keeps its ending.
func TestErrorsPath(t *testing.T) {
	for output, want := range map[string]string{
		"results.jsonl": "results.errors.jsonl", "a.b/results": "a.b/results.errors", "r.jsonl.zst": "r.errors.jsonl.zst",
		"r.gz": "r.errors.gz", "x/.jsonl": "x/.errors.jsonl", "-": "",
	} {
		if got := ErrorsPath(output); got != want {
			t.Errorf("%s: got %s, want %s", output, got, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
