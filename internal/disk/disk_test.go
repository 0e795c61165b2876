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

// A folder of one's own is closed to others. A link, a file and the folder of another user are refused and left as they are.
func TestOwnFolder(t *testing.T) {
	dir := t.TempDir()
	open, link, file, foreign := filepath.Join(dir, "open"), filepath.Join(dir, "link"), filepath.Join(dir, "file"), filepath.Join(dir, "foreign")
	must.Do(t, errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Symlink(open, link), os.WriteFile(file, nil, 0o600)))
	refused := []string{link, file, filepath.Join(dir, "no", "such")}
	if os.Getuid() == 0 { // only root can give a folder away
		must.Do(t, errors.Join(os.Mkdir(foreign, 0o700), os.Chmod(foreign, 0o777), os.Chown(foreign, 12345, 12345)))
		refused = append(refused, foreign)
	}
	for _, folder := range refused {
		if err := OwnFolder(folder); err == nil {
			t.Errorf("%s was taken", folder)
		}
	}
	if info, err := os.Stat(foreign); err == nil && info.Mode().Perm() != 0o777 {
		t.Errorf("the folder of another user has now mode %o", info.Mode().Perm())
	}
	for _, folder := range []string{open, filepath.Join(dir, "new")} {
		if err := OwnFolder(folder); err != nil {
			t.Error(err)
		}
		if mode := must.Get(os.Stat(folder))(t).Mode().Perm(); mode != 0o700 {
			t.Errorf("%s has mode %o", folder, mode)
		}
	}
}
