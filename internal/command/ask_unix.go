//go:build unix

package command

import (
	"os"
	"syscall"
)

// askSignals are those by which one asks a process how it stands.
func askSignals() []os.Signal { return append([]os.Signal{syscall.SIGUSR1}, infoSignal...) }
