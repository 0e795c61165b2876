//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
)

// watched is a folder whose disk writes down what is asked of it.
func watched(t testing.TB) (*folder, *[]string) {
	f := newFolder(filepath.Join(t.TempDir(), "s"), fileMode)
	said := new([]string)
	actual := disk.Real()
	short := func(path string) string {
		rel, err := filepath.Rel(filepath.Dir(f.root), path)
		if err != nil {
			t.Error(err)
		}
		if filepath.Base(filepath.Dir(path)) == tempFolder {
			return "temporary"
		}
		return rel
	}
	f.disk = disk.Disk{
		SyncData: func(file *os.File) error {
			info, err := file.Stat()
			*said = append(*said, fmt.Sprintf("sync %s of %d", short(file.Name()), info.Size()))
			return errors.Join(err, actual.SyncData(file))
		},
		SyncFolder: func(name string) {
			*said = append(*said, "sync the folder of "+short(name))
			actual.SyncFolder(name)
		},
	}
	f.link = func(from, to string) error {
		err := os.Link(from, to)
		*said = append(*said, fmt.Sprintf("link %s to %s: %v", short(from), short(to), disk.Bare(err)))
		return err
	}
	return f, said
}

func expectSaid(t testing.TB, said *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*said, want) {
		t.Errorf("done was\n\t%s\nand not\n\t%s", strings.Join(*said, "\n\t"), strings.Join(want, "\n\t"))
	}
	*said = nil
}

// The bytes are synced before the name is there. The name, with each folder made for it, is synced
// before Create returns.
func TestSyncOrder(t *testing.T) {
	f, said := watched(t)
	must.Do(t, CreateBytes(t.Context(), f, "a/b/k", []byte("words")))
	expectSaid(t, said,
		"sync the folder of s", "sync the folder of s/.headrace-tmp", "sync temporary of 5",
		"link temporary to s/a/b/k: no such file or directory",
		"sync the folder of s/a", "sync the folder of s/a/b",
		"link temporary to s/a/b/k: <nil>", "sync the folder of s/a/b/k")
	must.Do(t, CreateBytes(t.Context(), f, "a/b/l", []byte("more words")))
	expectSaid(t, said, "sync temporary of 10", "link temporary to s/a/b/l: <nil>", "sync the folder of s/a/b/l")
}

// A writer that gets ErrExists can count on the object: the first writer may have been killed before it synced.
func TestSyncOfWhatOthersWrote(t *testing.T) {
	f, said := watched(t)
	must.Do(t, CreateBytes(t.Context(), f, "k", nil))
	*said = nil
	if err := CreateBytes(t.Context(), f, "k", nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	expectSaid(t, said, "sync the folder of s/k")

	link := f.link
	f.link = func(from, to string) error { // somebody comes between the look and the link
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			t.Error(err)
		}
		return link(from, to)
	}
	if err := CreateBytes(t.Context(), f, "l", nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	expectSaid(t, said, "sync temporary of 0", "link temporary to s/l: file exists", "sync the folder of s/l")
}

// The name of a journal lasts before its first line, and Sync asks the disk.
func TestSyncOfAppending(t *testing.T) {
	f, said := watched(t)
	tail := must.Get(f.Append(t.Context(), "a/k"))(t)
	expectSaid(t, said, "sync the folder of s", "sync the folder of s/a", "sync the folder of s/a/k")
	_, wrote := tail.Write([]byte("line\n"))
	must.Do(t, errors.Join(wrote, tail.Sync(), tail.Close()))
	expectSaid(t, said, "sync s/a/k of 5")
	for name, want := range map[string]error{"a/k": ErrExists, "a": errFolder, "a/k/l": errBeginning, "..": ErrName} {
		if _, err := f.Append(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What fails leaves nothing, and a name that can be taken.
func TestFailuresLeaveNothing(t *testing.T) {
	f, _ := watched(t)
	goodDisk, goodLink := f.disk, f.link
	full := errors.New("full")
	for what, fails := range map[string]func(){
		"sync": func() { f.disk.SyncData = func(*os.File) error { return full } },
		"link": func() { f.link = func(string, string) error { return full } },
	} {
		f.disk, f.link = goodDisk, goodLink
		fails()
		err := CreateBytes(t.Context(), f, "k", []byte("words"))
		if !errors.Is(err, full) || errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", what, err)
		}
		if got := temporaries(t, f); got != nil {
			t.Errorf("%s: %q are left", what, got)
		}
		if _, err := f.Open(t.Context(), "k", 0, -1); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.disk, f.link = goodDisk, goodLink
	if err := CreateBytes(t.Context(), f, "k", []byte("words")); err != nil {
		t.Error(err)
	}
	if got := temporaries(t, f); got != nil {
		t.Errorf("%q are left", got)
	}
}

// A link whose answer was lost is seen by the file that it leads to.
func TestALinkThatWasAnsweredLate(t *testing.T) {
	for _, lost := range []error{syscall.EEXIST, syscall.EIO} {
		f, _ := watched(t)
		link := f.link
		f.link = func(from, to string) error {
			if err := link(from, to); err != nil {
				return err
			}
			return &os.LinkError{Op: "link", Old: from, New: to, Err: lost}
		}
		if err := CreateBytes(t.Context(), f, "k", []byte("mine")); err != nil {
			t.Errorf("%v: %v", lost, err)
		}
		if err := CreateBytes(t.Context(), f, "k", []byte("mine")); !errors.Is(err, ErrExists) {
			t.Errorf("%v: %v", lost, err)
		}
	}
}

// A file system without hard links is refused, and the error says what to do.
func TestNoHardLinks(t *testing.T) {
	for _, why := range []error{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EXDEV, syscall.EMLINK} {
		f := newFolder(t.TempDir(), fileMode)
		f.link = func(from, to string) error { return &os.LinkError{Op: "link", Old: from, New: to, Err: why} }
		err := CreateBytes(t.Context(), f, "k", []byte("mine"))
		want := fmt.Sprintf("store: create k: the store is not safe: the file system of %s makes no hard links (%v), "+
			"without which two writers can both win: take another folder, or a bucket", f.root, why)
		if !errors.Is(err, ErrUnsafe) || err.Error() != want {
			t.Errorf("%v", err)
		}
		if err := Probe(t.Context(), f, chance(), ProbeConfig{}); !errors.Is(err, ErrUnsafe) {
			t.Errorf("the probe: %v", err)
		}
	}
}

// An object and a folder of one name cannot be, and neither is called taken.
func TestAnObjectIsNoFolder(t *testing.T) {
	f, _ := watched(t)
	must.Do(t, CreateBytes(t.Context(), f, "a/b", nil))
	if err := CreateBytes(t.Context(), f, "a", nil); !errors.Is(err, errFolder) {
		t.Error(err)
	}
	if err := CreateBytes(t.Context(), f, "a/b/c", nil); !errors.Is(err, errBeginning) {
		t.Error(err)
	}
	f.link = func(_, to string) error { // the folder comes between the look and the link
		return errors.Join(os.MkdirAll(to, 0o700), syscall.EEXIST)
	}
	if err := CreateBytes(t.Context(), f, "x", nil); !errors.Is(err, errFolder) {
		t.Error(err)
	}
}

// Folders that become empty go, but not the store's own, and not those of others.
func TestDeletePrunes(t *testing.T) {
	f, _ := watched(t)
	for _, name := range []string{"work/7/1-a", "work/7/2-b", "work/8/1-a"} {
		must.Do(t, CreateBytes(t.Context(), f, name, nil))
	}
	for _, c := range []struct {
		name string
		left []string
	}{
		{"work/7/1-a", []string{"work/7", "work/8"}}, {"work/7/2-b", []string{"work/8"}}, {"work/8/1-a", nil},
	} {
		must.Do(t, f.Delete(t.Context(), c.name))
		left, err := filepath.Glob(filepath.Join(f.root, "work", "*"))
		if err != nil || len(left) != len(c.left) {
			t.Errorf("%s: %q, %v", c.name, left, err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.root, "work")); !isAbsent(err) {
		t.Error("an empty folder is left")
	}
	if _, err := os.Stat(f.root); err != nil {
		t.Error("the store's own folder went")
	}
}

// A writer of an object next to a deleted one finds the folder gone, and makes it again.
func TestCreateWhileOthersPrune(t *testing.T) {
	f, _ := watched(t)
	link, times := f.link, 0
	f.link = func(from, to string) error {
		if times++; times < 50 {
			_ = os.Remove(filepath.Dir(to))
		}
		return link(from, to)
	}
	if err := CreateBytes(t.Context(), f, "work/7/1-a", []byte("x")); err != nil || times != 50 {
		t.Errorf("%v after %d", err, times)
	}
	f.link = func(from, to string) error {
		_ = os.Remove(filepath.Dir(to))
		return link(from, to)
	}
	err := CreateBytes(t.Context(), f, "work/8/1-a", []byte("x"))
	if err == nil || !strings.Contains(err.Error(), "taken away 100 times") {
		t.Error(err)
	}
}

// What killed writers left goes after a day, and nothing else.
func TestSweep(t *testing.T) {
	f, _ := watched(t)
	must.Do(t, CreateBytes(t.Context(), f, "k", nil))
	now := time.Now()
	temp := filepath.Join(f.root, tempFolder)
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		path := filepath.Join(temp, name)
		must.Do(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now, now.Add(-age))))
	}
	must.Do(t, os.Chtimes(filepath.Join(f.root, "k"), now, now.Add(-100*time.Hour)))
	must.Get(Open(t.Context(), f.root))(t)
	if got := temporaries(t, f); !slices.Equal(got, []string{"young"}) {
		t.Errorf("%q are left", got)
	}
	if _, err := f.Open(t.Context(), "k", 0, -1); err != nil {
		t.Error(err)
	}
}

// A writer whose temporary file was swept gets that error, and not ErrExists.
func TestCreateOfWhatWasSwept(t *testing.T) {
	f, _ := watched(t)
	f.link = func(from, to string) error {
		_ = os.Remove(from)
		return os.Link(from, to)
	}
	if err := CreateBytes(t.Context(), f, "k", nil); !errors.Is(err, errSwept) || errors.Is(err, ErrExists) {
		t.Error(err)
	}
}

// Nobody else reads prompts and answers, unless the address says so.
func TestModes(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for _, c := range []struct {
		query        string
		file, folder fs.FileMode
	}{{"", 0o600, 0o700}, {"?mode=0660", 0o660, 0o770}, {"?mode=644", 0o644, 0o755}} {
		root := filepath.Join(t.TempDir(), "s")
		s := must.Get(Open(t.Context(), "file://"+root+c.query))(t)
		tail, appended := Append(t.Context(), s, "b/l")
		must.Do(t, errors.Join(CreateBytes(t.Context(), s, "a/k", nil), appended, tail.Close()))
		for path, want := range map[string]fs.FileMode{
			"": c.folder, "a": c.folder, "a/k": c.file, "b/l": c.file, tempFolder: c.folder,
		} {
			if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s %s: %v, %v", c.query, path, info.Mode().Perm(), err)
			}
		}
	}
}

// Links to files are objects, links to nowhere are not, and a link to a folder is said.
func TestLinksAndOthers(t *testing.T) {
	f, _ := watched(t)
	elsewhere := filepath.Join(t.TempDir(), "in.jsonl")
	must.Do(t, errors.Join(
		CreateBytes(t.Context(), f, "a", nil), os.WriteFile(elsewhere, []byte("line\n"), 0o600),
		os.Symlink(elsewhere, filepath.Join(f.root, "b")), os.Symlink("nowhere", filepath.Join(f.root, "c")),
		syscall.Mkfifo(filepath.Join(f.root, "d"), 0o600), os.WriteFile(filepath.Join(f.root, ".nfs01"), nil, 0o600)))
	var got []string
	for o, err := range f.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(o.Name, o.Size))
	}
	if !slices.Equal(got, []string{"a0", "b5"}) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"c", "d"} {
		if _, err := f.Open(t.Context(), name, 0, -1); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.Do(t, os.Symlink(filepath.Dir(elsewhere), filepath.Join(f.root, "e")))
	if err := lastError(f.List(t.Context(), "", "")); !errors.Is(err, errLink) || !strings.Contains(err.Error(), "e: ") {
		t.Errorf("%v", err)
	}
	if err := os.Symlink("ab", filepath.Join(f.root, "ab")); err != nil { // one that leads to itself
		t.Fatal(err)
	}
	if err := lastError(f.List(t.Context(), "", "")); !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), "ab: ") {
		t.Errorf("%v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(f.root, "aa\n"), nil, 0o600))
	if err := lastError(f.List(t.Context(), "", "")); !errors.Is(err, ErrName) {
		t.Errorf("%v", err)
	}
}

func lastError(list func(func(Object, error) bool)) (last error) {
	for _, err := range list {
		last = err
	}
	return last
}

// An input that is written to while it is read is neither what it was nor what it is.
func TestChangedWhileItIsRead(t *testing.T) {
	f, _ := watched(t)
	must.Do(t, CreateBytes(t.Context(), f, "in", []byte("line 1\nline 2\n")))
	id, _, err := f.Identity(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	in := must.Get(f.OpenSame(t.Context(), "in", id, 0, 7))(t)
	defer in.Close()
	must.Do(t, os.WriteFile(filepath.Join(f.root, "in"), []byte("LINE 1\nline 2\nmore\n"), 0o600))
	if got, err := io.ReadAll(in); !errors.Is(err, ErrChanged) {
		t.Errorf("%q, %v", got, err)
	}
}

// Nothing is opened that is not needed, and nothing stays open.
func TestNothingStaysOpen(t *testing.T) {
	f, _ := watched(t)
	ctx := t.Context()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for n := range 20 {
		name := fmt.Sprint("a/", n)
		_ = CreateBytes(ctx, f, name, []byte("x"))
		_ = CreateBytes(ctx, f, name, []byte("x"))
		_ = f.Create(canceled, name+"x", strings.NewReader("x"), 2)
		_ = f.Create(ctx, name+"y", strings.NewReader("x"), 2)
		_, _ = f.Open(ctx, "a", 0, -1)
		_, _ = f.OpenSame(ctx, name, "other", 0, -1)
		_, _ = f.Append(ctx, name)
		for range f.List(ctx, "", "") {
			break
		}
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before)+2 {
		t.Errorf("%d files are open, %d were", len(after), len(before))
	}
}
