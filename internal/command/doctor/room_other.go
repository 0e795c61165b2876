//go:build !linux && !darwin && !freebsd

package doctor

// roomAt does not know the room of a disk here.
func roomAt(string) (room uint64, known bool) { return 0, false }
