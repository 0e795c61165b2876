//go:build unix

package panel

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A stop is known at the first look after it, also if the process runs before its signal arrives.
func TestContinued(t *testing.T) {
	continued := Continued()
	if continued() {
		t.Error("it was not stopped")
	}
	time.Sleep(longestSilence + 10*time.Millisecond)
	late := time.AfterFunc(signalWait/4, func() { _ = unix.Kill(unix.Getpid(), unix.SIGCONT) })
	defer late.Stop()
	if !continued() {
		t.Error("a stop was not seen")
	}
	shortest := time.Hour // a busy machine may make one of them longer
	for range 5 {
		began := time.Now()
		if continued() {
			t.Error("it was stopped once")
		}
		shortest = min(shortest, time.Since(began))
	}
	if shortest >= signalWait {
		t.Errorf("each of five looks without a stop lasted %v or more", shortest)
	}
}
