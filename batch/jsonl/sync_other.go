//go:build !linux

package jsonl

import "os"

// syncData waits until a file is on the disk.
func syncData(file *os.File) error { return file.Sync() }
