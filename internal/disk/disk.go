package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// Disk holds the functions that make files durable. A test gives its own, to see the order
// of the calls, or to let one of them fail.
type Disk struct {
	// SyncData waits until the bytes of a file, and its length, are on the disk.
	SyncData func(*os.File) error
	// Rename gives a file its name, and replaces any file of that name.
	Rename func(from, to string) error
	// SyncFolder makes the name of a file, new or taken over, survive the loss of power. For
	// a link it also does so for the name of the file that it leads to. It returns no error:
	// not every system can sync a folder. Where it fails the file is still as safe as its
	// file system makes new names.
	SyncFolder func(name string)
}

// Real returns the disk of this machine.
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
