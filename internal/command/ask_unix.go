//go:build unix

package command

import (
	"os"
	"syscall"
)

// askSignals returns the signals by which a user asks a process how it stands.
func askSignals() []os.Signal { return append([]os.Signal{syscall.SIGUSR1}, infoSignal...) }
