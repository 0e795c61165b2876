//go:build unix && !(darwin || dragonfly || freebsd || netbsd || openbsd)

package world

import (
	"os"
)

var infoSignal []os.Signal
