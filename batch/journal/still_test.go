package journal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/headrace/headrace/internal/must"
)

// A lock counts only while its file has the name. If the holder removes the file after
// another process has opened it, a lock on it keeps nobody out.
func TestLockOfARemovedFileIsNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl.lock")
	held := flock.New(name)
	if ours, err := held.TryLock(); err != nil || !ours {
		t.Fatal(ours, err)
	}
	defer held.Close()
	if !stillHasName(held, name) {
		t.Error("it is the file under the name, and does not count")
	}
	must.Do(t, os.Remove(name))
	if stillHasName(held, name) {
		t.Error("no file has the name, and it counts")
	}
	must.Do(t, os.WriteFile(name, nil, 0o600))
	if stillHasName(held, name) {
		t.Error("another file has the name, and it counts")
	}
}

// A process that gets a lock has it alone, while others take it and remove it.
func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	alone := make(chan struct{}, 1) // holds the present owner
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := 0; n < 500; {
				lock, err := LockOutput(path)
				if errors.Is(err, ErrLocked) {
					continue
				}
				n++
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case alone <- struct{}{}:
				default:
					t.Error("two have the lock")
				}
				runtime.Gosched()
				select {
				case <-alone:
				default:
				}
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
