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

// Why an output is not locked; errors.Is finds them in what LockOutput returns.
var (
	ErrLocked      = errors.New("wait for that run to end, or choose another output")
	ErrForeignLock = errors.New("it is a link, or not a lock of headrace: check it and move it away, or choose another output")
)

// LockSuffix is what the name of an output's lock file ends in.
const LockSuffix = ".lock"

// Lock keeps other processes out of an output, by its name. Who comes by a hard link, which
// is another name, is kept out when a file of it is opened for writing (ErrLocked too). The
// system drops it when the process ends, however it ends: what a crash leaves is a file that
// locks nothing.
type Lock struct{ held *flock.Flock }

// LockOutput locks the output at path by the file path + ".lock", which holds the
// pid of this process. If another process has it the error is ErrLocked and names
// that one's pid; if one of the locks at others is on the same output, it is
// ErrSameFile. Symbolic links to one output are locked as one. A lock file that is a link, or
// holds what no lock does, is ErrForeignLock, and stays as it is.
func LockOutput(path string, others ...*Lock) (*Lock, error) {
	l, err := lockName(realName(path)+LockSuffix, others)
	if err != nil {
		return nil, fmt.Errorf("journal: lock %s: %w", path, err)
	}
	return l, nil
}

func lockName(name string, others []*Lock) (*Lock, error) {
	for {
		if err := mayLock(name); err != nil {
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
		if isStill(held, name) {
			return sign(held, name)
		}
		_ = held.Close()
	}
}

// mayLock finds what no lock file is. What comes under the name after that is not
// followed if it is a link.
func mayLock(name string) error {
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

// isStill tells the file that was locked from one that has come under its name
// since: between our opening it and locking it, its holder may have removed it.
func isStill(held *flock.Flock, name string) bool {
	ours, err := held.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(ours, named)
}

// sign puts our pid into the file that was locked. It is for people: where it cannot be
// written, the lock holds all the same.
func sign(held *flock.Flock, name string) (*Lock, error) {
	file, err := os.OpenFile(name, os.O_RDWR|disk.NoFollow, fileMode)
	if err != nil {
		return &Lock{held}, nil
	}
	defer func() { _ = file.Close() }() // what it holds matters to nobody's lock
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

// pidIn reads the pid from a lock file, and reports false for a file that is none. One
// that lost its power may be empty, or hold zeros.
func pidIn(file io.Reader) (pid string, ok bool) {
	text, err := io.ReadAll(io.LimitReader(file, maxPid+1))
	pid = strings.Trim(string(text), "\x00\r\n")
	return pid, err == nil && len(text) <= maxPid && strings.Trim(pid, "0123456789") == ""
}

// lockedBy says who has a lock: this run, by another name, or another process, which
// wrote its pid right after it had locked.
func lockedBy(name string, others []*Lock) error {
	named, err := os.Lstat(name)
	for _, l := range others {
		if l == nil || err != nil {
			continue
		}
		if ours, err := l.held.Stat(); err == nil && os.SameFile(ours, named) {
			return ErrSameFile
		}
	}
	return fmt.Errorf("it is in use by %s: %w", holder(name), ErrLocked)
}

// own keeps a file that is written to from those who have another name for it, and so
// another lock: a hard link. It holds until the file is closed. A device is everybody's.
func own(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && errors.Is(disk.Own(file), disk.ErrOwned) {
		return fmt.Errorf("it is in use under another name: %w", ErrLocked)
	}
	return nil // whoever cannot say whose it is says nothing against us
}

// LockedBy tells who has locked the output at path at this moment, and reports false if
// nobody has, or if that cannot be found out. It changes nothing; for an instant it keeps the
// lock from others, so it is not to be asked all the time.
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
	_ = l.Close() // it was only asked
	return "", false
}

// LockLeft reports whether a process that was killed has left its lock beside the output at
// path: the file is there, and nobody holds it. It asks as LockedBy does.
func LockLeft(path string) bool {
	info, err := os.Lstat(realName(path) + LockSuffix)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, held := LockedBy(path)
	return !held
}

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

// Unlock lets others in and removes the lock file, in the order in which no two can
// hold it: removed while locked, so that who waits for it sees that it has gone. Another file
// that has come under the name stays.
func (l *Lock) Unlock() error {
	if isStill(l.held, l.held.Path()) {
		_ = os.Remove(l.held.Path()) // where an open file cannot be removed, it stays, unlocked
	}
	if err := l.held.Close(); err != nil {
		return fmt.Errorf("journal: unlock %s: %w", l.held.Path(), disk.Bare(err))
	}
	return nil
}
