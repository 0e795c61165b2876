//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether this user owns a file.
func isOwn(info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Getuid()
}
