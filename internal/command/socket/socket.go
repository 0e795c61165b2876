package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/headrace/headrace/internal/disk"
)

// Longest is the length of a path that every system takes, less what a new socket's name has in addition.
const Longest = 103 - len(newSuffix)

// newSuffix ends the name of a socket that is not ready.
const newSuffix = ".new"

// Reasons why there can be no socket.
var (
	ErrInUse   = errors.New("another process listens there")
	ErrNoPeers = errors.New("this system does not say whose process connects")
)

// Listener accepts connections of this user's processes only.
type Listener struct {
	*net.UnixListener

	Path string
	info os.FileInfo // of the socket
}

// Listen listens at a path. The caller closes the Listener, which removes the socket.
func Listen(path string) (*Listener, error) {
	if !KnowsPeers {
		return nil, ErrNoPeers
	}
	if len(path) > Longest {
		return nil, fmt.Errorf("the path has %d bytes, and may have %d", len(path), Longest)
	}
	defer lockFolder(path)()
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, errors.New("the file is no socket")
		}
		if !isDead(path) {
			return nil, ErrInUse
		}
	}
	l, err := listen(path)
	return l, disk.Bare(err)
}

// lockWait bounds the wait for the others that use the folder of a socket. Each needs less than [dialWait].
const lockWait = 3 * time.Second

// lockFolder keeps others from making or removing sockets in the folder of a path, until done is called. Without a
// lock in time it goes on all the same.
func lockFolder(path string) (done func()) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return func() {}
	}
	for began := time.Now(); errors.Is(disk.Own(folder), disk.ErrOwned) && time.Since(began) < lockWait; {
		time.Sleep(time.Millisecond)
	}
	return func() { _ = folder.Close() } // nothing was written
}

// listen makes a socket that is closed to others. It gets its final name only when it is ready.
func listen(path string) (*Listener, error) {
	fresh := path + newSuffix
	_ = os.Remove(fresh)                 // of a process that was killed in between
	ln, err := net.Listen("unix", fresh) //nolint:noctx // it blocks on nothing
	if err != nil {
		return nil, err
	}
	unix := ln.(*net.UnixListener)
	unix.SetUnlinkOnClose(false)
	own, err := os.Lstat(fresh)
	if err = errors.Join(err, os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		_, _ = unix.Close(), os.Remove(fresh)
		return nil, err
	}
	return &Listener{unix, path, own}, nil
}

// dialWait is the time that a process has to take a connection. One that is busy has a queue for them.
const dialWait = time.Second

// isDead reports whether no process listens at a socket any more.
func isDead(path string) bool {
	conn, err := net.DialTimeout("unix", path, dialWait)
	if err == nil {
		_ = conn.Close() // it was only tried
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// RemoveDead removes a socket at which no process listens any more. It leaves other files alone.
func RemoveDead(path string) {
	defer lockFolder(path)()
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket && isDead(path) {
		_ = os.Remove(path) // another process may have removed it
	}
}

// ErrNoOne says that no process of this user listens at a path.
var ErrNoOne = errors.New("no process listens there")

// Dial connects to a process of this user.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoOne
	case err != nil:
		return nil, disk.Bare(err)
	}
	if uid, err := peerUser(conn.(*net.UnixConn)); err != nil || uid != os.Getuid() {
		_ = conn.Close() // it hears nothing
		return nil, errors.Join(errors.New("another user listens there"), err)
	}
	return conn, nil
}

// OwnFolder makes a folder for sockets of this user, as [disk.OwnFolder] does.
func OwnFolder(path string) error {
	if !KnowsPeers {
		return ErrNoPeers
	}
	if err := disk.OwnFolder(path); err != nil {
		return fmt.Errorf("%s: %w", path, disk.Bare(err))
	}
	return nil
}

// Accept returns the next connection of this user, and closes those of others.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUser(conn); err == nil && uid == os.Getuid() {
			return conn, nil
		}
		_ = conn.Close() // it gets nothing
	}
}

// Close stops listening and removes the socket. It leaves a socket that another process has put in its place.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	defer lockFolder(l.Path)()
	if now, lost := os.Lstat(l.Path); lost == nil && os.SameFile(now, l.info) {
		_ = os.Remove(l.Path) // somebody else may have
	}
	return err
}

// peerUser returns the user of the process at the other end.
func peerUser(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	fault := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) })
	return uid, errors.Join(fault, err)
}
