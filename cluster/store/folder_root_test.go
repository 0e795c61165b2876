package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/cluster/store"
)

// A folder that is gone, or of which only the mount point is left, is away. No object counts as missing there, and
// nothing is written outside the store. When the folder is back all of it is there, whatever its number.
func TestAFolderThatIsUnmounted(t *testing.T) {
	ctx, root := t.Context(), filepath.Join(t.TempDir(), "home")
	s := open(t, root)
	if err := store.CreateBytes(ctx, s, "a/k", []byte("words")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ReadAll(ctx, s, "a/none", 10); !errors.Is(err, store.ErrMissing) {
		t.Fatal(err)
	}
	if err := os.Rename(root, root+".mounted"); err != nil {
		t.Fatal(err)
	}
	away := func(what string) {
		t.Helper()
		_, read := store.ReadAll(ctx, s, "a/k", 10)
		_, _, identified := store.Identity(ctx, s, "a/k")
		_, appended := store.Append(ctx, s, "a/l")
		var listed error
		for _, err := range s.List(ctx, "a/", "") {
			listed = err
		}
		for verb, err := range map[string]error{
			"read": read, "identified": identified, "appended": appended, "listed": listed, "created": store.CreateBytes(ctx, s, "a/m", nil),
		} {
			if !errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrMissing) {
				t.Errorf("%s: %s: %v", what, verb, err)
			}
		}
	}
	away("gone")
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made anew: %v", err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	away("empty")
	if err := errors.Join(os.Remove(root), os.Rename(root+".mounted", root)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s, ""); len(got) != 1 || read(t, s, "a/k") != "words" {
		t.Errorf("back: %q", got)
	}
	copied := root + ".copy"
	if err := errors.Join(os.CopyFS(copied, os.DirFS(root)), os.RemoveAll(root), os.Rename(copied, root)); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateBytes(ctx, s, "a/m", nil); err != nil || read(t, s, "a/k") != "words" {
		t.Errorf("with another number: %v", err)
	}
}
