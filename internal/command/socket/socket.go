package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/headrace/headrace/internal/disk"
)

// Longest is the length of a path that every system takes, less what a new socket's name has in addition.
const Longest = 103 - len(suffix)

// suffix ends the name of a socket that is not ready.
const suffix = ".new"

// Reasons why there can be no socket.
var (
	ErrInUse   = errors.New("another process listens there")
	ErrNoPeers = errors.New("this system does not say whose process connects")
)

// Listener accepts connections of this user's processes only.
type Listener struct {
	*net.UnixListener

	Path string
}

// Listen listens at a path. The caller closes the Listener, which removes the socket.
func Listen(path string) (*Listener, error) {
	if !KnowsPeers {
		return nil, ErrNoPeers
	}
	if len(path) > Longest {
		return nil, fmt.Errorf("the path has %d bytes, and may have %d", len(path), Longest)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, errors.New("the file is no socket")
		}
		if !isDead(path) {
			return nil, ErrInUse
		}
	}
	fresh := path + suffix
	_ = os.Remove(fresh)                 // of a process that was killed in between
	ln, err := net.Listen("unix", fresh) //nolint:noctx // it blocks on nothing
	if err != nil {
		return nil, disk.Bare(err)
	}
	unix := ln.(*net.UnixListener)
	unix.SetUnlinkOnClose(false)
	if err = errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		_, _ = unix.Close(), os.Remove(fresh)
		return nil, disk.Bare(err)
	}
	return &Listener{unix, path}, nil
}

// triedFor is the time that a process has to take a connection. One that is busy has a queue for them.
const triedFor = time.Second

// isDead reports whether no process listens at a socket any more.
func isDead(path string) bool {
	conn, err := net.DialTimeout("unix", path, triedFor)
	if err == nil {
		_ = conn.Close() // it was only tried
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// RemoveDead removes a socket at which no process listens any more. It leaves other files alone.
func RemoveDead(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket && isDead(path) {
		_ = os.Remove(path) // another process may have removed it
	}
}

// Accept closes the connections of other users.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerOf(conn); err == nil && uid == os.Getuid() {
			return conn, nil
		}
		_ = conn.Close() // it gets nothing
	}
}

// Close stops listening, and removes the socket.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if !errors.Is(err, net.ErrClosed) {
		_ = os.Remove(l.Path) // it may be gone
	}
	return err
}

// peerOf returns the user of the process at the other end.
func peerOf(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	fault := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) })
	return uid, errors.Join(fault, err)
}
