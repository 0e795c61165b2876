//go:build unix

package panel

import (
	"os"
	"os/signal"
	"time"

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

// A process that goes on may run for some time before it gets the signal. A panel is painted
// twice a second, so a longer silence between two looks may be a stop.
const (
	longestSilence = 510 * time.Millisecond
	signalWait     = 100 * time.Millisecond
)

// Continued returns a function that reports whether the process was stopped, and goes on,
// since its last call. After a silence it waits for the signal.
func Continued() func() bool {
	goesOn := make(chan os.Signal, 1) // one signal is enough
	signal.Notify(goesOn, unix.SIGCONT)
	looked := time.Now()
	return func() bool {
		wait := time.Duration(0)
		if time.Since(looked) > longestSilence {
			wait = signalWait
		}
		defer func() { looked = time.Now() }()
		select {
		case <-goesOn:
			return true
		default:
		}
		select {
		case <-goesOn:
			return true
		case <-time.After(wait):
			return false
		}
	}
}
