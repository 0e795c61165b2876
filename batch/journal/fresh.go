package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// BackupSuffix is the ending of the name of an output that was put aside.
const BackupSuffix = ".bak"

// StartOver puts the file at path aside, as path.bak or, if that is there already,
// path.bak.1 and so on: it never overwrites a file. It returns the new name, "" if there
// was nothing to keep. A link stays a link: the file to which it leads gets another name in
// its own folder. StartOver also refuses to move what Create never writes to: a directory,
// or a file of this run at others. The caller holds the lock.
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

// MayStartOver refuses what StartOver refuses, and moves nothing. With it a caller can
// check several files before the first is moved.
func MayStartOver(path string, others ...string) error {
	_, err := mayStartOver(path, others)
	return err
}

// mayStartOver also reports whether the file holds anything.
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

// PutBack undoes StartOver: the file at kept gets its name again. If another file has come
// under that name since, PutBack returns ErrNotEmpty. The caller still holds the lock.
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

// freeName returns name, or the first of name.1, name.2, … that is not taken.
func freeName(name string) string {
	free := name
	for n := 1; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}
