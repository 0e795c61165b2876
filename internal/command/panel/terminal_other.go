//go:build !unix && !windows

package panel

import "os"

func steerable(*os.File) bool { return os.Getenv("TERM") != "dumb" }

// ForegroundOf is nil: this system has no background.
func ForegroundOf(*os.File) func() bool { return nil }

// Continued is nil: this system does not stop processes.
func Continued() func() bool { return nil }
