package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// BackupSuffix is what the name of an output that was put aside ends in.
const BackupSuffix = ".bak"

// StartOver puts the file at path aside, as path.bak or, where that is there
// already, path.bak.1 and so on: nothing is ever overwritten. It tells the new
// name, "" if there was nothing to keep. What Create refuses to write to whatever
// it holds (a directory, a file of this run at others) is not moved either. The
// caller holds the lock.
func StartOver(path string, others ...string) (kept string, err error) {
	return startOver(disk.Real(), path, others)
}

func startOver(d disk.Disk, path string, others []string) (kept string, err error) {
	err = mayWrite(path, others)
	switch {
	case err == nil: // not there, or empty
		return "", nil
	case !errors.Is(err, ErrNotEmpty):
		return "", fmt.Errorf("journal: put %s aside: %w", path, err)
	}
	kept = freeName(path + BackupSuffix)
	if err := d.Rename(path, kept); err != nil {
		return "", fmt.Errorf("journal: put %s aside: %w", path, disk.Bare(err))
	}
	d.SyncFolder(path)
	return kept, nil
}

// freeName is name, or the first of name.1, name.2, … that is not taken.
func freeName(name string) string {
	free := name
	for n := 1; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}
