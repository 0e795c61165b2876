package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// made opens an output behind what it holds, and makes a missing one.
func made(path string, others ...string) (*Tail, error) {
	j, err := ReadJournal(path, others...)
	if err != nil {
		return nil, err
	}
	return j.Append()
}

// lazily opens an errors file, and leaves a missing one to its first line.
func lazily(path string, others ...string) (*Tail, error) {
	j, err := ReadErrorsJournal(path, others...)
	if err != nil {
		return nil, err
	}
	return j.AppendLazily()
}

// A file is made for its owner alone, and is empty.
func TestCreateMakesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	tail, err := made(path)
	if err = errors.Join(err, tail.Close(), tail.Close()); err != nil || tail.Size != 0 {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("mode %v, %d bytes", info.Mode(), info.Size())
	}
}

// Nothing that exists is overwritten: not a file that holds something, not a
// directory, not the input by any of its names. An empty file is taken.
func TestCreateSparesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("full"), "x")
	write(t, at("empty"), "")
	must.Do(t, errors.Join(os.Symlink(at("empty"), at("link")), os.Link(at("full"), at("hard"))))
	tests := []struct {
		path, other string
		want        error
	}{
		{at("full"), "", ErrForeign},
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
		for name, create := range map[string]func(string, ...string) (*Tail, error){"at once": made, "lazily": lazily} {
			w, err := create(tt.path, "-", tt.other)
			if name == "lazily" && tt.want == fs.ErrNotExist { //nolint:errorlint // a table's own value
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

// A lazy file is made when it is opened; one that came into being meanwhile is spared.
func TestLazyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e")
	first, err := lazily(path)
	late, err2 := lazily(path)
	must.Do(t, errors.Join(err, err2, first.Close()))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that nobody needed: %v", err)
	}
	file := must.Get(first.Open())(t)
	_, err = file.WriteString("x")
	must.Do(t, errors.Join(err, file.Close()))
	if _, err := late.Open(); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("the second one: %v", err)
	}
}

// The errors of an output go next to it, under a name that keeps its ending.
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
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
