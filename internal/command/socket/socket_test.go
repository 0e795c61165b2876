//go:build linux || darwin

package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// folder returns a folder whose name is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "s"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// leaveDead leaves a socket at which nobody listens, as a killed process does.
func leaveDead(t *testing.T, path string) {
	t.Helper()
	ln := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	ln.SetUnlinkOnClose(false)
	must.Do(t, ln.Close())
}

// Of two processes that start at the same instant, where a killed one has left its socket, neither removes what the other
// listens at: exactly one is heard, and the other knows that it is not.
func TestTwoStartsAtOnce(t *testing.T) {
	path := filepath.Join(folder(t), "x.sock")
	for round := range 300 {
		leaveDead(t, path)
		var starts sync.WaitGroup
		var all [2]*Listener
		for i := range all {
			starts.Go(func() {
				RemoveDead(path)
				l, err := Listen(path)
				if all[i] = l; err != nil && !errors.Is(err, ErrInUse) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		starts.Wait()
		heard := 0
		for _, l := range all {
			if l != nil {
				heard++
			}
		}
		if conn, err := net.Dial("unix", path); err != nil || heard != 1 {
			t.Fatalf("round %d: %d listen, and a client gets %v", round, heard, err)
		} else {
			must.Do(t, conn.Close())
		}
		for _, l := range all {
			if l != nil {
				must.Do(t, l.Close())
			}
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("round %d: the socket stays: %v", round, err)
		}
	}
}

// The end of a process leaves the socket of another one, which has come in its place.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(folder(t), "x.sock")
	first := must.Get(Listen(path))(t)
	must.Do(t, os.Remove(path)) // by somebody who cleans up
	second := must.Get(Listen(path))(t)
	must.Do(t, first.Close())
	conn := must.Get(net.Dial("unix", path))(t)
	must.Do(t, errors.Join(conn.Close(), second.Close()))
}
