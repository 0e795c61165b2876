package saver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
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
	must.Do(t, s.Close())
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
		tail, err := lazily(path)
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
	tail := must.Get(made(os.DevNull))(t)
	s := New(tail, Config{})
	s.Save(savedLine(1), nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Where a torn piece cannot be cut off, as on standard output, it has a line of its own: each
// line that counts as saved is whole, wherever the disk was full and however often.
func TestTornPieceIsNotGluedToTheNextLine(t *testing.T) {
	whole := lineText(1) + lineText(2)
	for _, room := range []int{0, 1, 20, len(lineText(1)) - 1, len(lineText(1)), len(lineText(1)) + 1, len(whole) - 1} {
		for _, again := range []int{0, 1, 2, 40} { // what there is room for when it is tried again
			file := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
			out := &roomy{file, room}
			w := &writer{name: "out", out: out}
			b := bundleOf(1, 2)
			for k := 0; len(b.items) > 0; k++ {
				n, _ := w.writeLines(b)
				b.removeFirst(n)
				if out.room = again; k > 0 {
					out.room = 1 << 20
				}
			}
			text, err := os.ReadFile(file.Name())
			if err != nil || file.Close() != nil {
				t.Fatal(err)
			}
			for n := range 2 {
				if !strings.Contains("\n"+string(text), "\n"+lineText(n+1)) {
					t.Fatalf("after %d bytes, then %d, line %d is not whole:\n%s", room, again, n+1, text)
				}
			}
			if room == len(lineText(1)) && again == 0 && string(text) != whole {
				t.Errorf("nothing was torn, and there is more than the lines:\n%s", text)
			}
		}
	}
}

func bundleOf(numbers ...int) *bundle {
	b := new(bundle)
	for _, n := range numbers {
		b.add(&pendingLine{line: savedLine(n)})
	}
	return b
}
