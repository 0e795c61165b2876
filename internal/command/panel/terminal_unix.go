//go:build unix

package panel

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// steerable is false for terminals that say that they only show text.
func steerable(*os.File) bool { return os.Getenv("TERM") != "dumb" }

// ForegroundOf is how to ask whether this process is in the foreground of a terminal. Where
// that has no such order, or it is another session's, it is.
func ForegroundOf(f *os.File) func() bool {
	fd := int(f.Fd())
	return func() bool {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err != nil || group == unix.Getpgrp()
	}
}

// Continued is how to ask whether the process was stopped, and goes on, since it was asked
// last.
func Continued() func() bool {
	goesOn := make(chan os.Signal, 1) // that it was is enough to know
	signal.Notify(goesOn, unix.SIGCONT)
	return func() bool {
		select {
		case <-goesOn:
			return true
		default:
			return false
		}
	}
}
