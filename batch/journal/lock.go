package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/headrace/headrace/internal/disk"
)

// Why LockOutput does not lock an output; errors.Is finds them in its error.
var (
	ErrLocked      = errors.New("wait for that run to end, or choose another output")
	ErrForeignLock = errors.New("it is a link, or not a lock of headrace: check it and move it away, or choose another output")
)

// LockSuffix is the ending of the name of an output's lock file.
const LockSuffix = ".lock"

// Lock keeps other processes out of an output, by its name. A process that uses a hard
// link, which is another name, is kept out when it opens the file for writing (ErrLocked
// too). The system releases the lock when the process ends, however it ends. A crash leaves
// only a file that locks nothing.
type Lock struct{ held *flock.Flock }

// LockOutput locks the output at path by the file path + ".lock", which holds the pid of
// this process. If another process has the lock, the error is ErrLocked and names its pid.
// If one of the locks at others is on the same output, the error is ErrSameFile. Symbolic
// links to one output share its lock. A lock file that is a link, or that does not look
// like a lock, is ErrForeignLock and stays as it is.
func LockOutput(path string, others ...*Lock) (*Lock, error) {
	l, err := lockFile(realName(path)+LockSuffix, others)
	if err != nil {
		return nil, fmt.Errorf("journal: lock %s: %w", path, err)
	}
	return l, nil
}

// lockFile locks the file of that name and signs it. It begins again if the file lost its name before the lock was
// had: such a lock would keep nobody out.
func lockFile(name string, others []*Lock) (*Lock, error) {
	for {
		if err := checkLockName(name); err != nil {
			return nil, err
		}
		held := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR|disk.NoFollow), flock.SetPermissions(fileMode))
		ours, err := held.TryLock()
		if err != nil {
			return nil, disk.Bare(err)
		}
		if !ours {
			return nil, lockedBy(name, others)
		}
		if stillHasName(held, name) {
			return writePid(held, name)
		}
		_ = held.Close()
	}
}

// checkLockName refuses a name whose file cannot be a lock. If a link comes under the name later, it is not
// followed.
func checkLockName(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return disk.Bare(err)
	}
	if !info.Mode().IsRegular() {
		return foreignLock(name)
	}
	return nil
}

func foreignLock(name string) error { return fmt.Errorf("%s: %w", name, ErrForeignLock) }

// stillHasName reports whether the locked file is the one that has the name now. Between our opening it and
// locking it, its holder may have removed it, and another file may have come there.
func stillHasName(held *flock.Flock, name string) bool {
	ours, err := held.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(ours, named)
}

// writePid writes our pid into the locked file. The pid is for people: if it cannot be written, the lock holds all
// the same.
func writePid(held *flock.Flock, name string) (*Lock, error) {
	file, err := os.OpenFile(name, os.O_RDWR|disk.NoFollow, fileMode)
	if err != nil {
		return &Lock{held}, nil
	}
	defer func() { _ = file.Close() }() // its content does not affect the lock
	if _, ok := pidIn(file); !ok {
		return nil, errors.Join(foreignLock(name), held.Close())
	}
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{held}, nil
}

// maxPid is the longest text of a lock file, in bytes: 19 digits and a line feed.
const maxPid = 20

// pidIn reads the pid from a lock file, and reports false for a file that is not one. After
// a loss of power a lock file may be empty, or hold zeros.
func pidIn(file io.Reader) (pid string, ok bool) {
	text, err := io.ReadAll(io.LimitReader(file, maxPid+1))
	pid = strings.Trim(string(text), "\x00\r\n")
	return pid, err == nil && len(text) <= maxPid && strings.Trim(pid, "0123456789") == ""
}

// lockedBy returns the error that names the holder of a lock. If that is one of our own locks on the same output,
// the error is ErrSameFile. Otherwise it is another process (ErrLocked), which wrote its pid right after it locked
// the file.
func lockedBy(name string, others []*Lock) error {
	for _, l := range others {
		if l != nil && stillHasName(l.held, name) {
			return ErrSameFile
		}
	}
	return fmt.Errorf("it is in use by %s: %w", holder(name), ErrLocked)
}

// keepOthersOut keeps an open file from processes that use another name for it, a hard link, and so another lock.
// It holds until the file is closed. A device belongs to everybody.
func keepOthersOut(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && errors.Is(disk.Own(file), disk.ErrOwned) {
		return fmt.Errorf("it is in use under another name: %w", ErrLocked)
	}
	return nil // an error leaves the owner unknown, which is no reason to refuse
}

// LockedBy returns who has locked the output at path at this moment. It reports false if
// nobody has, or if that cannot be found out. It changes nothing. For an instant it keeps
// the lock from others, so callers must not poll it.
func LockedBy(path string) (who string, locked bool) {
	name := realName(path) + LockSuffix
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	l := flock.New(name, flock.SetFlag(os.O_RDONLY|disk.NoFollow))
	free, err := l.TryRLock()
	if err != nil {
		return "", false
	}
	if !free {
		return holder(name), true
	}
	_ = l.Close() // it only served the question
	return "", false
}

// LockLeft reports whether a killed process has left its lock next to the output at path:
// the file is there, and nobody holds it. It asks as LockedBy does.
func LockLeft(path string) bool {
	info, err := os.Lstat(realName(path) + LockSuffix)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, held := LockedBy(path)
	return !held
}

// holder names the process that has the lock, by the pid in the lock file. It says "another
// process" if the file cannot be read or has no pid.
func holder(name string) string {
	const unknown = "another process"
	file, err := os.OpenFile(name, os.O_RDONLY|disk.NoFollow, 0)
	if err != nil {
		return unknown
	}
	defer func() { _ = file.Close() }() // it was only read
	if pid, ok := pidIn(file); ok && pid != "" {
		return "process " + pid
	}
	return unknown
}

// Unlock removes the lock file and lets others in. It removes the file while it is
// locked, so that a waiting process sees that it has gone: no two can hold the lock. If
// another file has come under the name, that file stays.
func (l *Lock) Unlock() error {
	if stillHasName(l.held, l.held.Path()) {
		_ = os.Remove(l.held.Path()) // where an open file cannot be removed, it stays, unlocked
	}
	if err := l.held.Close(); err != nil {
		return fmt.Errorf("journal: unlock %s: %w", l.held.Path(), disk.Bare(err))
	}
	return nil
}
