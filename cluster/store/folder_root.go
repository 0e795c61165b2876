package store

import (
	"fmt"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// errLost says that a folder is not the one that was there before, and has nothing in it: a file system was unmounted, and
// what is seen is the place where it was.
var errLost = fmt.Errorf("%w: its folder was there, and is gone or empty: is it mounted?", ErrAway)

// present is errLost where the folder was lost since it was first seen. Whatever is not found there proves nothing then, and
// what is written there is written beside the store. One that is there again is taken for what it was, also if
// it has another number: a file server may give it one each time that it is mounted.
func (f *folder) present() error {
	root, err := os.Stat(f.root)
	if err != nil && !absent(err) {
		return disk.Bare(err)
	}
	known, there := f.known.Load(), err == nil
	switch {
	case known == nil && !there:
		return nil // it was not made yet
	case known != nil && (!there || !os.SameFile(*known, root) && empty(f.root)):
		return errLost
	}
	f.known.Store(&root)
	return nil
}

// empty reports whether there is nothing in a folder, as far as it can be read.
func empty(path string) bool {
	open, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = open.Close() }()
	names, _ := open.Readdirnames(1)
	return len(names) == 0
}

// missing is the error for an object that is not there.
func (f *folder) missing() error {
	if err := f.present(); err != nil {
		return err
	}
	return ErrMissing
}
