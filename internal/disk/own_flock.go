//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"
	"syscall"
)

// Own keeps others from owning a file, no matter under which name they have opened it, until
// this one is closed. It keeps nobody from reading or writing. ErrOwned says that another
// owns it; any other error, that the file system knows no owners.
func Own(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrOwned
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}
