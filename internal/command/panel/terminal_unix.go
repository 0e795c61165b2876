//go:build unix

package panel

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// steerable is false for terminals that only show text, as they say.
func steerable(*os.File) bool { return os.Getenv("TERM") != "dumb" }

// ForegroundOf returns a function that reports whether this process is in the foreground of
// a terminal. It is also true where the terminal has no such order, or belongs to another
// session.
func ForegroundOf(f *os.File) func() bool {
	fd := int(f.Fd())
	return func() bool {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err != nil || group == unix.Getpgrp()
	}
}

// Continued returns a function that reports whether the process was stopped, and goes on,
// since its last call.
func Continued() func() bool {
	goesOn := make(chan os.Signal, 1) // one signal is enough
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
