//go:build linux || darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

// freeBytes returns the bytes that a user may still write in a folder.
func freeBytes(folder string) (room uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil || s.Bavail < 0 { //nolint:staticcheck // FreeBSD counts below zero where root alone has room
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
