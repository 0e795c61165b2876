//go:build unix && !(darwin || dragonfly || freebsd || netbsd || openbsd)

package command

import "os"

var infoSignal []os.Signal
