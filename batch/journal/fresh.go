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
// name, "" if there was nothing to keep. A link stays one: it is the file that it leads
// to that gets another name, where it lies. What Create refuses to write to whatever
// it holds (a directory, a file of this run at others) is not moved either. The
// caller holds the lock.
func StartOver(path string, others ...string) (kept string, err error) {
	return startOver(disk.Real(), path, others)
}

func startOver(d disk.Disk, path string, others []string) (kept string, err error) {
	holds, err := mayStartOver(path, others)
	if err != nil || !holds {
		return "", err
	}
	target := linkedTo(path)
	kept = freeName(target + BackupSuffix)
	if err := d.Rename(target, kept); err != nil {
		return "", fmt.Errorf("journal: put %s aside: %w", path, disk.Bare(err))
	}
	d.SyncFolder(target)
	return kept, nil
}

// MayStartOver refuses what StartOver refuses, and moves nothing: so whoever starts over
// with several files can know of all before the first is moved.
func MayStartOver(path string, others ...string) error {
	_, err := mayStartOver(path, others)
	return err
}

// mayStartOver also tells whether the file holds anything.
func mayStartOver(path string, others []string) (holds bool, err error) {
	err = mayWrite(path, others)
	switch {
	case err == nil: // not there, or empty
		return false, nil
	case !errors.Is(err, ErrNotEmpty):
		return false, fmt.Errorf("journal: put %s aside: %w", path, err)
	}
	return true, nil
}

// PutBack undoes StartOver: the file at kept gets its name again, unless something has
// come under that since (ErrNotEmpty). The caller still holds the lock.
func PutBack(kept, path string) error {
	target := linkedTo(path)
	err := ErrNotEmpty
	if _, there := os.Lstat(target); errors.Is(there, fs.ErrNotExist) {
		err = os.Rename(kept, target)
	}
	if err != nil {
		return fmt.Errorf("journal: give %s its name back: %w", path, disk.Bare(err))
	}
	disk.Real().SyncFolder(target)
	return nil
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
