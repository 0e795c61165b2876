//go:build !unix && !windows

package panel

import "os"

func steerable(*os.File) bool { return os.Getenv("TERM") != "dumb" }

// ForegroundOf is nil: there is no background.
func ForegroundOf(*os.File) func() bool { return nil }

// Continued is nil: no process is stopped.
func Continued() func() bool { return nil }
