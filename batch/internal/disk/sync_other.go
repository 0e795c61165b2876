//go:build !linux

package disk

import "os"

// SyncData waits until a file is on the disk.
func SyncData(file *os.File) error { return file.Sync() }
