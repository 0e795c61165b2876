package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A lock file that is a link, or anything that no lock is, is refused, and what it leads
// to or holds stays as it was.
func TestLockIsNoLinkAndNobodyElses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const text = "the only copy"
	write(t, at("victim"), text)
	must.Do(t, errors.Join(
		os.Symlink(at("victim"), at("soft"+LockSuffix)), os.Symlink(at("made"), at("dangling"+LockSuffix)),
		os.Link(at("victim"), at("hard"+LockSuffix)), os.Mkdir(at("folder"+LockSuffix), 0o700),
	))
	write(t, at("long"+LockSuffix), strings.Repeat("1", maxPid+1))
	for _, name := range []string{"soft", "dangling", "hard", "folder", "long"} {
		lock, err := LockOutput(at(name))
		if !errors.Is(err, ErrForeignLock) || !strings.Contains(err.Error(), name+LockSuffix) {
			t.Errorf("%s: %v", name, err)
		}
		if lock != nil {
			_ = lock.Unlock()
		}
		if _, err := os.Lstat(at(name + LockSuffix)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := textOf(t, at("victim")); got != text {
		t.Errorf("the file holds %q", got)
	}
	if _, err := os.Lstat(at("made")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made through a link: %v", err)
	}
}

// What a crash, or the loss of power, leaves of a lock is taken over.
func TestStaleLocks(t *testing.T) {
	for _, text := range []string{"", "1234\n", "12", "\x00\x00\x00"} {
		path := filepath.Join(t.TempDir(), "out")
		write(t, path+LockSuffix, text)
		lock, err := LockOutput(path)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
}

// An output that is not there yet has one lock, by its own name and through links on its
// way, also through a link that leads to nothing yet. For its own run the error says that
// it is one file; for other runs, that it is in use.
func TestLockOfALinkToNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, errors.Join(
		os.Mkdir(at("real"), 0o700), os.Symlink("real", at("folder")), os.Symlink(filepath.Join("folder", "out"), at("link")),
		os.Symlink(at("link"), at("link of link")), os.Symlink("loop", at("loop")),
	))
	first := must.Get(LockOutput(at("real/out")))(t)
	for _, name := range []string{"real/out", "real/../real/./out", "folder/out", "link", "link of link"} {
		if _, err := LockOutput(at(name)); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := LockOutput(at(name), nil, first); !errors.Is(err, ErrSameFile) {
			t.Errorf("%s, by its own run: %v", name, err)
		}
		if !SameFile(at(name), at("real/out")) {
			t.Errorf("%s is taken for another file", name)
		}
	}
	if _, err := LockOutput(at("none/out")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if other, err := LockOutput(at("loop"), first); err == nil {
		_ = other.Unlock()
	}
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
}

// Names are one file if they lead to one, whether it is there or not.
func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "a", "x")
	must.Do(t, errors.Join(os.Link("a", "hard"), os.Symlink("new", "soft"), os.Symlink("a", "to a")))
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a", "./a", true},
		{"a", "hard", true},
		{"a", "to a", true},
		{"a", filepath.Join(dir, "a"), true},
		{"a", "new", false},
		{"new", "soft", true},
		{"new", filepath.Join(dir, "x", "..", "new"), true},
		{"new", "other", false},
		{"", "", false},
		{".", "", false},
	} {
		if got := SameFile(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %v", tt.a, tt.b, got)
		}
	}
}

// A hard link to an output is that output: who writes under one name keeps others from it
// under any, and the file is as it was.
func TestHardLinkIsTheSameOutput(t *testing.T) {
	text := journalLine("a", "")
	path := writeFile(t, text)
	link := filepath.Join(filepath.Dir(path), "hard")
	if err := os.Link(path, link); err != nil || runtime.GOOS == "windows" {
		t.Skip("no file is owned here: ", err)
	}
	read := func(path string) *Journal {
		j := must.Get(ReadJournal(path))(t)
		return j
	}
	first, second := read(path), read(link)
	tail, err := first.Append()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Append(); !errors.Is(err, ErrLocked) || textOf(t, path) != text {
		t.Errorf("got %v", err)
	}
	if err := tail.Close(); err != nil {
		t.Error(err)
	}
	if tail, err = second.Append(); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := tail.Close(); err != nil {
		t.Error(err)
	}
}

// An output that was made during a run is kept from others too.
func TestHardLinkToANewOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	tail := must.Get(made(path))(t)
	defer func() { _ = tail.Close() }()
	if err := os.Link(path, path+".hard"); err != nil || runtime.GOOS == "windows" {
		t.Skip("no file is owned here: ", err)
	}
	if _, err := made(path + ".hard"); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// What is no file has no owner: any number of runs may write to it.
func TestDeviceHasNoOwner(t *testing.T) {
	if _, err := os.Stat(os.DevNull); err != nil {
		t.Skip(err)
	}
	for range 2 {
		tail := must.Get(made(os.DevNull))(t)
		defer func() { _ = tail.Close() }()
	}
}

// LockedBy returns who has locked an output, and changes nothing.
func TestLockedBy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if who, locked := LockedBy(path); locked || who != "" {
		t.Errorf("no lock: %q, %t", who, locked)
	}
	lock, err := LockOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	if who, locked := LockedBy(path); !locked || runtime.GOOS != "windows" && who != fmt.Sprintf("process %d", os.Getpid()) {
		t.Errorf("locked: %q, %t", who, locked)
	}
	must.Do(t, lock.Unlock())
	for _, left := range []string{"", "1234\n"} { // by a crash
		write(t, path+LockSuffix, left)
		if who, locked := LockedBy(path); locked {
			t.Errorf("left by a crash: %q", who)
		}
		if got := textOf(t, path+LockSuffix); got != left {
			t.Errorf("it was changed: %q", got)
		}
	}
	if lock, err = LockOutput(path); err != nil {
		t.Fatal(err)
	}
	_ = lock.Unlock()
}
