//go:build windows

package panel

import (
	"os"

	"golang.org/x/sys/windows"
)

// steerable makes a console obey sequences, and is false for one that cannot.
func steerable(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	if os.Getenv("TERM") == "dumb" || windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// ForegroundOf and Continued are nil: there is neither a background nor a stopped process.
func ForegroundOf(*os.File) func() bool { return nil }

// Continued is nil.
func Continued() func() bool { return nil }
