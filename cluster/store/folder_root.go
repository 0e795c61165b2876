package store

import (
	"fmt"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// errLost says that a folder that was there before is gone, or that another, empty one is in its place. Its file system
// was unmounted, and only the mount point is left.
var errLost = fmt.Errorf("%w: its folder was there, and is gone or empty: is it mounted?", ErrAway)

// present returns errLost if the folder was lost since it was first seen. Then a missing object proves nothing, and new
// files would land outside the store. A folder that is there again counts as the old one even with another number: a
// file server may give it a new one with each mount.
func (f *folder) present() error {
	root, err := os.Stat(f.root)
	if err != nil && !absent(err) {
		return disk.Bare(err)
	}
	known, there := f.known.Load(), err == nil
	switch {
	case known == nil && !there:
		return nil // the folder is not made yet
	case known != nil && (!there || !os.SameFile(*known, root) && empty(f.root)):
		return errLost
	}
	f.known.Store(&root)
	return nil
}

// empty reports whether a folder is empty, as far as it can be read.
func empty(path string) bool {
	open, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = open.Close() }()
	names, _ := open.Readdirnames(1)
	return len(names) == 0
}

// missing returns the error for an object that is not there.
func (f *folder) missing() error {
	if err := f.present(); err != nil {
		return err
	}
	return ErrMissing
}
