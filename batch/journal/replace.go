package journal

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// nextSuffix is what the name of a file ends in that is to take another's place. There is
// one such name for each file, so what a crash leaves is found and taken away.
const nextSuffix = ".headrace.tmp"

// Replace makes the file at path anew, or for the first time: what write gives is written beside
// it, synced, and takes its place at once or not at all. A link stays one, and who may read
// the old file may read the new one. An error of write ends it, and is returned as it is. The
// caller holds the lock.
func Replace(path string, write func(*bufio.Writer) error) error {
	var theirs error
	err := replace(disk.Real(), path, func(out *bufio.Writer) error {
		theirs = write(out)
		return theirs
	})
	if err != nil && theirs == nil {
		return fmt.Errorf("journal: write %s: %w", path, disk.Bare(err))
	}
	return theirs
}

// replace makes a file anew beside the old one and then takes its place: at once, and
// when it is on the disk, or not at all. A link stays one, and who may read the old file
// may read the new one. The caller holds the lock.
func replace(d disk.Disk, path string, write func(*bufio.Writer) error) error {
	path = linkedTo(path)
	file, err := beside(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), d.SyncData(file))
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = d.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	d.SyncFolder(path)
	return nil
}

// beside makes the file that is to take the place of the one at path. Of what bears its
// name only a file is taken away: it is one that a crash has left.
func beside(path string) (*os.File, error) {
	name := path + nextSuffix
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		_ = os.Remove(name) // if it stays, it is in the way, and that is said
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil {
		_ = file.Chmod(info.Mode().Perm()) // else it is for its owner alone
	}
	return file, nil
}
