package panel

import (
	"os"

	"golang.org/x/term"
)

// The size of a terminal that does not report it.
const (
	DefaultWidth  = 80
	DefaultHeight = 24
)

// SizeOf returns a function that asks a terminal for its columns and rows; nil if f is no
// terminal, or one that cannot be steered.
func SizeOf(f *os.File) func() (width, height int) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || !steerable(f) {
		return nil
	}
	return func() (width, height int) {
		if width, height, err := term.GetSize(fd); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return DefaultWidth, DefaultHeight
	}
}
