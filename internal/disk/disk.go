package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// Disk is what makes files last. A test gives its own, to see in which order things are
// done, or to let one of them fail.
type Disk struct {
	// SyncData waits until the bytes of a file, and its length, are on the disk.
	SyncData func(*os.File) error
	// Rename gives a file its name, in the place of whatever bears it.
	Rename func(from, to string) error
	// SyncFolder makes the name of a file, new or taken over, survive the loss of power; of
	// a link also the name of the file that it leads to. It tells no error: not every system
	// can sync a folder, and where it fails the file is still as safe as its file system
	// makes new names.
	SyncFolder func(name string)
}

// Real is the disk of this machine.
func Real() Disk {
	return Disk{SyncData: syncData, Rename: os.Rename, SyncFolder: func(name string) { _ = syncFolder(name) }}
}

func syncFolder(name string) error {
	folder := filepath.Dir(name)
	err := syncOne(folder)
	if at, broken := filepath.EvalSymlinks(name); broken == nil && filepath.Dir(at) != folder {
		err = errors.Join(err, syncOne(filepath.Dir(at)))
	}
	return err
}

func syncOne(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
