package journal

import (
	"bufio"
	"fmt"

	"github.com/headrace/headrace/internal/disk"
)

// Replace writes the file at path anew, or for the first time. The output of write goes to
// a file next to it, is synced, and takes the file's place at once or not at all. A link
// stays a link, and the new file keeps the old one's permissions to read. An error of write
// ends the work, and is returned as it is. The caller holds the lock.
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

// replace writes a file of lines anew, where it lies if path is a link. The caller holds
// the lock.
func replace(d disk.Disk, path string, write func(*bufio.Writer) error) error {
	return d.Replace(linkedTo(path), opens, write)
}
