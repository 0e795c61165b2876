//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package world

import (
	"os"
	"syscall"
)

// infoSignal is the signal that Ctrl-T sends.
var infoSignal = []os.Signal{syscall.SIGINFO}
