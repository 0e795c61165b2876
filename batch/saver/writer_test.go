package saver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
)

// recorder notes each write.
type recorder struct{ writes []string }

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, string(p))
	return len(p), nil
}

// Each write to the file below begins and ends with a line.
func TestWritesAreWholeLines(t *testing.T) {
	rec, want := &recorder{}, ""
	s := To(rec, "out", Config{})
	for n := range 3 * commitLines / 2 {
		s.Save(savedLine(n), nil)
		want += lineText(n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range rec.writes {
		if !strings.HasPrefix(text, `{"id"`) || !strings.HasSuffix(text, "}\n") {
			t.Errorf("a write is torn: %.20q … %q", text, text[len(text)-5:])
		}
	}
	if strings.Join(rec.writes, "") != want || len(rec.writes) < 2 {
		t.Errorf("%d writes make other lines than were saved", len(rec.writes))
	}
}

// A lazy file is there if, and only if, a line was saved; that it cannot be made is
// told in one go.
func TestLazyFiles(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]error{"e": nil, "none/e": fs.ErrNotExist} {
		path := filepath.Join(dir, name)
		tail, err := journal.CreateLazily(path)
		if err != nil {
			t.Fatal(err)
		}
		s := New(tail, Config{})
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file without lines: %v", err)
		}
		s.Save(savedLine(1), nil)
		err = s.Close()
		if !errors.Is(err, want) || want != nil && strings.Count(err.Error(), "create "+path) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "e")); string(text) != lineText(1) {
		t.Errorf("the file holds %q", text)
	}
}

// A write that fails in the middle of a line, behind lines of an earlier run, leaves those.
func TestTornLineIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	w := newWriter(behindOneLine(t, path))
	w.out = &roomy{w.file, 20}
	s := start(w, Config{})
	s.Save(savedLine(2), nil)
	if err := s.Close(); err == nil {
		t.Fatal("a torn write went unseen")
	}
	if text, _ := os.ReadFile(path); string(text) != lineText(1) {
		t.Errorf("the file holds %q", text)
	}
}

// What is not a regular file, such as /dev/null, is written and closed like one.
func TestDevicesHaveNoDisk(t *testing.T) {
	tail, err := journal.Create(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	s := New(tail, Config{})
	s.Save(savedLine(1), nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
