package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// The real disk is asked: a file that is not open cannot be synced.
func TestSyncDataAsksTheSystem(t *testing.T) {
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	if err := errors.Join(Real().SyncData(file), file.Close()); err != nil {
		t.Error(err)
	}
	if err := Real().SyncData(file); err == nil {
		t.Error("a closed file was synced")
	}
}

// A folder that is not there harms nobody, and one that is is not left open.
func TestSyncFolderLeavesNothingOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for range 10 {
		Real().SyncFolder(name)
		Real().SyncFolder(name + "/none/f")
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
		t.Errorf("%d files are open, %d were", len(after), len(before))
	}
}

// The system is asked to sync a folder, that of a link and that in which the file lies. It
// says no for those of /proc, and only if it was asked.
func TestSyncFolderAsksTheSystem(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := syncFolder(link); err != nil {
		t.Errorf("an ordinary folder: %v", err)
	}
	must.Do(t, os.Symlink("/proc/self/status", link))
	for _, name := range []string{"/proc/self/status", link} {
		if err := syncFolder(name); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error without its names is what the system said.
func TestBare(t *testing.T) {
	_, missing := os.Open("none")
	renamed := os.Rename("none", "other")
	for _, err := range []error{missing, renamed} {
		if got := Bare(err); !errors.Is(err, got) || got.Error() != "no such file or directory" {
			t.Errorf("%v became %v", err, got)
		}
	}
}
