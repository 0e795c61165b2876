package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/headrace/headrace/batch/internal/disk"
	"github.com/headrace/headrace/batch/internal/lines"
)

// ErrLocked says that another process writes the output.
var ErrLocked = errors.New("it is in use: wait for that run to end, or name another output")

// LockSuffix is what the name of an output's lock file ends in.
const LockSuffix = ".lock"

// Lock keeps other processes out of an output. The system drops it when the process
// ends, however it ends: what a crash leaves is a file that locks nothing.
type Lock struct{ held *flock.Flock }

// LockOutput locks the output at path by the file path + ".lock", which holds the
// pid of this process. If another process has it the error is ErrLocked and names
// that one's pid. Links to one output are locked as one, if it is there already.
func LockOutput(path string) (*Lock, error) {
	name := path + LockSuffix
	if target, err := filepath.EvalSymlinks(path); err == nil {
		name = target + LockSuffix
	}
	for {
		held := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
		ours, err := held.TryLock()
		if err != nil {
			return nil, fmt.Errorf("journal: lock %s: %w", path, disk.Bare(err))
		}
		if !ours {
			return nil, fmt.Errorf("journal: lock %s: process %s writes to it: %w", path, holder(name), ErrLocked)
		}
		if isStill(held, name) {
			// The pid is for people: without it, the lock holds all the same.
			_ = os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), fileMode)
			return &Lock{held}, nil
		}
		_ = held.Close()
	}
}

// isStill tells the file that was locked from one that has come under its name
// since: between our opening it and locking it, its holder may have removed it.
func isStill(held *flock.Flock, name string) bool {
	ours, err := held.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(ours, named)
}

// holder reads the pid from a lock file. Its holder writes it right after locking.
func holder(name string) string {
	text, err := os.ReadFile(name)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return lines.Clip(pid)
	}
	return "(unknown)"
}

// Unlock lets others in and removes the lock file, in the order in which no two can
// hold it: removed while locked, so that who waits for it sees that it has gone.
func (l *Lock) Unlock() error {
	_ = os.Remove(l.held.Path()) // where an open file cannot be removed, it stays, unlocked
	if err := l.held.Close(); err != nil {
		return fmt.Errorf("journal: unlock %s: %w", l.held.Path(), disk.Bare(err))
	}
	return nil
}
