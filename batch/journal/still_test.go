package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// A lock counts only while its file bears the name: one that was removed between being
// opened and being locked, by whoever held it, keeps nobody out.
func TestLockOfARemovedFileIsNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl.lock")
	held := flock.New(name)
	if ours, err := held.TryLock(); err != nil || !ours {
		t.Fatal(ours, err)
	}
	defer held.Close()
	if !isStill(held, name) {
		t.Error("it is the file under the name, and does not count")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if isStill(held, name) {
		t.Error("no file has the name, and it counts")
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if isStill(held, name) {
		t.Error("another file has the name, and it counts")
	}
}
