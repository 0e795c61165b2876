package promptfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
)

// Where one of the old files cannot be put aside, the other keeps its name too.
func TestFreshMovesAllOrNone(t *testing.T) {
	d := newFixture(t, ask("a"))
	if _, _, err := d.run(); err != nil {
		t.Fatal(err)
	}
	before, failed := d.files(), journal.ErrorsPath(d.out)
	other := filepath.Join(d.dir, "other")
	write(t, other, "x")
	write(t, failed, "")
	if err := syscall.Mount(other, failed, "", syscall.MS_BIND, ""); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a file")
		}
		t.Fatal(err)
	}
	d.cfg.Fresh = true
	job := d.open()
	_, err := job.Begin()
	must.Do(t, errors.Join(syscall.Unmount(failed, 0), os.Remove(failed), job.Close()))
	if left, _ := filepath.Glob(d.out + ".*"); !errors.Is(err, syscall.EBUSY) || d.files() != before || len(left) > 0 {
		t.Errorf("%v; left: %v", err, left)
	}
}
