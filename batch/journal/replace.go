package journal

import (
	"bufio"
	"fmt"

	"github.com/headrace/headrace/internal/disk"
)

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

// replace makes a file of lines anew, where it lies if path is a link. The caller holds the
// lock.
func replace(d disk.Disk, path string, write func(*bufio.Writer) error) error {
	return d.Replace(linkedTo(path), opens, write)
}
