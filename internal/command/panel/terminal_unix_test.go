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
	began := time.Now()
	for range 3 {
		if continued() {
			t.Error("it was stopped once")
		}
	}
	if lasted := time.Since(began); lasted > signalWait {
		t.Errorf("three looks without a stop lasted %v", lasted)
	}
}
