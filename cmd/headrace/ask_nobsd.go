//go:build unix && !(darwin || dragonfly || freebsd || netbsd || openbsd)

package main

import "os"

var infoSignal []os.Signal
