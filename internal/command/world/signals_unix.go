//go:build unix

package world

import (
	"os"
	"os/signal"
	"syscall"
)

// AskSignals returns the signals by which a user asks a process how it stands.
func AskSignals() []os.Signal { return append([]os.Signal{syscall.SIGUSR1}, infoSignal...) }

// OpenFiles returns the number of files and connections the process may have open; 0 if that
// is not known. Go has raised the limit as far as it may.
func OpenFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || int64(limit.Cur) < 0 {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // FreeBSD has an int64 there
}

// IgnoreFullQuota turns a limit on the size of files into an error of the write. That ends a
// run with whole files, as a full disk does.
func IgnoreFullQuota() { signal.Ignore(syscall.SIGXFSZ) }
