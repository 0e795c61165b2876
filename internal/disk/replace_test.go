//go:build unix

package disk

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

const mark = `{"mark":`

func replaceBy(path, text string) error {
	return Real().Replace(path, Marked(mark), func(w *bufio.Writer) error {
		_, err := w.WriteString(text)
		return err
	})
}

func textOf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// Replace removes a file under the new file's name only if headrace wrote it: a crash left
// it, cut off anywhere.
func TestReplaceRemovesOnlyItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for left, want := range map[string]error{
		"": nil, `{"ma`: nil, mark + "1}\n": nil, mark: nil, strings.Repeat(" ", 10) + mark: ErrInTheWay,
		"{\"prompt\":\"mine\"}\n": ErrInTheWay, "x": ErrInTheWay,
		strings.Repeat("\x00", 9000): nil, strings.Repeat("\x00", 9000) + "x": ErrInTheWay, `{"ma` + "\x00\x00": nil,
	} {
		must.Do(t, errors.Join(os.WriteFile(path, []byte("old"), 0o640), os.WriteFile(path+NextSuffix, []byte(left), 0o600)))
		err := replaceBy(path, "new")
		after, beside := "new", ""
		if want != nil {
			after, beside = "old", left
		}
		if !errors.Is(err, want) || textOf(path) != after || textOf(path+NextSuffix) != beside {
			t.Errorf("%q: %v, then %q and beside it %q", left, err, textOf(path), textOf(path+NextSuffix))
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%q: %v %v", left, info.Mode(), err)
		}
		_ = os.Remove(path + NextSuffix)
	}
}

// What is no file, or is another process's, is in the way whatever it holds, and is not
// waited for.
func TestReplaceLeavesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	must.Do(t, os.WriteFile(elsewhere, []byte(mark), 0o600))
	for name, make := range map[string]func(string) error{
		"link":   func(p string) error { return os.Symlink(elsewhere, p) },
		"folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"owned": func(p string) error {
			file, err := os.Create(p)
			if err == nil {
				t.Cleanup(func() { _ = file.Close() })
				err = Own(file)
			}
			return err
		},
	} {
		path := filepath.Join(dir, name)
		must.Do(t, make(path+NextSuffix))
		if err := replaceBy(path, "new"); !errors.Is(err, ErrInTheWay) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path + NextSuffix); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if textOf(elsewhere) != mark {
		t.Errorf("behind the link: %q", textOf(elsewhere))
	}
}

// A link at the name itself is replaced, and what it leads to stays.
func TestReplaceDoesNotFollow(t *testing.T) {
	dir := t.TempDir()
	path, elsewhere := filepath.Join(dir, "f"), filepath.Join(dir, "elsewhere")
	must.Do(t, errors.Join(os.WriteFile(elsewhere, []byte("mine"), 0o644), os.Symlink(elsewhere, path)))
	if err := replaceBy(path, "new"); err != nil || textOf(elsewhere) != "mine" || textOf(path) != "new" {
		t.Errorf("%v, %q, %q", err, textOf(elsewhere), textOf(path))
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// The new file is on the disk before it has the name, and then the name is; an unsynced disk
// only renames.
func TestReplaceInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var did []string
	d := Real()
	d.SyncData = func(f *os.File) error { did = append(did, "sync "+textOf(f.Name())); return nil }
	d.Rename = func(from, to string) error { did = append(did, "rename"); return os.Rename(from, to) }
	d.SyncFolder = func(string) { did = append(did, "folder") }
	hello := func(w *bufio.Writer) error { _, err := w.WriteString("hello"); return err }
	must.Do(t, errors.Join(d.Replace(path, Marked(mark), hello), d.Unsynced().Replace(path, Marked(mark), hello)))
	if got := strings.Join(did, ", "); got != "sync hello, rename, folder, rename" {
		t.Errorf("got %s", got)
	}
	did = nil
	if err := d.Write(path, []byte("whole"), 0o600); err != nil || strings.Join(did, ", ") != "sync whole, rename, folder" {
		t.Errorf("%v, %v", did, err)
	}
}

// An error at any step is returned, and leaves the old file with nothing next to it.
func TestFailedStepLeavesTheOldFile(t *testing.T) {
	broken := errors.New("broken")
	whole := func(d Disk, path string) error { return d.Write(path, []byte("new"), 0o600) }
	lines := func(w *bufio.Writer) error { _, err := w.WriteString("new"); return err }
	replaced := func(d Disk, path string) error { return d.Replace(path, Marked(mark), lines) }
	unwritable := func(d Disk, path string) error {
		file, err := os.OpenFile(path+NextSuffix, os.O_RDONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		return d.finishFile(file, path, lines)
	}
	refused := func(d Disk, path string) error {
		return d.Replace(path, Marked(mark), func(*bufio.Writer) error { return broken })
	}
	unsynced := func(d *Disk) { d.SyncData = func(*os.File) error { return broken } }
	closed := func(d *Disk) { d.SyncData = func(f *os.File) error { return f.Close() } }
	unnamed := func(d *Disk) { d.Rename = func(string, string) error { return broken } }
	for _, c := range []struct {
		step, name string
		do         func(Disk, string) error
		breaks     func(*Disk)
		want       error
	}{
		{"make", strings.Repeat("f", 250), whole, nil, syscall.ENAMETOOLONG},
		{"make", strings.Repeat("f", 250), replaced, nil, syscall.ENAMETOOLONG},
		{"write", "f", refused, nil, broken},
		{"flush", "f", unwritable, nil, syscall.EBADF},
		{"sync", "f", whole, unsynced, broken},
		{"sync", "f", replaced, unsynced, broken},
		{"close", "f", whole, closed, os.ErrClosed},
		{"close", "f", replaced, closed, os.ErrClosed},
		{"rename", "f", whole, unnamed, broken},
		{"rename", "f", replaced, unnamed, broken},
	} {
		dir, d := t.TempDir(), Real()
		path := filepath.Join(dir, c.name)
		must.Do(t, os.WriteFile(path, []byte("old"), 0o600))
		d.SyncFolder = func(string) { t.Errorf("%s: the name was synced", c.step) }
		if c.breaks != nil {
			c.breaks(&d)
		}
		err := c.do(d, path)
		if left, _ := os.ReadDir(dir); !errors.Is(err, c.want) || textOf(path) != "old" || len(left) != 1 {
			t.Errorf("%s: %v, then %q and %d files", c.step, err, textOf(path), len(left))
		}
	}
}

// Write gives the file the rights asked for, whatever an old one had and the process masks. It
// replaces a link, and its errors name the file as its caller does.
func TestWriteSetsTheRights(t *testing.T) {
	dir := t.TempDir()
	path, elsewhere := filepath.Join(dir, "f"), filepath.Join(dir, "elsewhere")
	must.Do(t, errors.Join(os.WriteFile(elsewhere, []byte("mine"), 0o640), os.Symlink(elsewhere, path)))
	for _, mode := range []os.FileMode{0o666, 0o600} {
		if err := Real().Write(path, []byte("new"), mode); err != nil || textOf(path) != "new" || textOf(elsewhere) != "mine" {
			t.Errorf("%v, %q, %q", err, textOf(path), textOf(elsewhere))
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	nowhere := filepath.Join(dir, "none", "f")
	if err := Real().Write(nowhere, nil, 0o600); err == nil || err.Error() != "write "+nowhere+": no such file or directory" {
		t.Errorf("%v", err)
	}
}
