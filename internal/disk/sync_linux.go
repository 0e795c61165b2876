package disk

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until the bytes of a file, and its length, are on the disk. It leaves out
// the times of access and change: fsync writes them too, at the cost of a second write.
func syncData(file *os.File) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
