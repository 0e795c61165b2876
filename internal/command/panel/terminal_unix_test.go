//go:build unix

package panel

import (
	"slices"
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
	var looks []time.Duration
	for range 5 {
		began := time.Now()
		if continued() {
			t.Error("it was stopped once")
		}
		looks = append(looks, time.Since(began))
	}
	slices.Sort(looks) // a busy machine may make two of them longer
	if lasted := looks[0] + looks[1] + looks[2]; lasted > signalWait {
		t.Errorf("three looks without a stop lasted %v", lasted)
	}
}
