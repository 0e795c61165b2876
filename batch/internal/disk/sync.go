package disk

import (
	"os"
	"path/filepath"
)

// SyncFolder makes the name of a new file survive the loss of power. Not every
// system can sync a folder, and where it fails the file is still as safe as its
// file system makes new names: no error is told.
func SyncFolder(name string) {
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return
	}
	_ = folder.Sync()
	_ = folder.Close()
}
