package disk

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until the bytes of a file, and its length, are on the disk. The
// times of access and change, which fsync would write too, cost a second write.
func syncData(file *os.File) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
