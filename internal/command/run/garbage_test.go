package run

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// The room for garbage is about 13 MiB while little is held, and Go's own share once
// more is held than that.
func TestRoomForGarbage(t *testing.T) {
	for kept, want := range map[uint64]int{
		0: 300, 4 << 20: 300, 5 << 20: 200, 6 << 20: 200, 8 << 20: 100, 13 << 20: 100, 1 << 30: 100,
	} {
		if got := percentFor(kept); got != want {
			t.Errorf("%d MiB held: %d percent, want %d", kept>>20, got, want)
		}
	}
}

// A run that comes to hold much is collected as usual from the next collection on,
// and when it is over the setting is what it was.
func TestGarbageIsWatched(t *testing.T) {
	before := gcPercent()
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	restore := tuneGarbage(func(string) (string, bool) { return "", false })
	much := make([]byte, 256<<20)
	for i := 0; gcPercent() != usualPercent; i++ {
		if i == 1000 {
			t.Fatalf("with 256 MiB held it is still %d percent", gcPercent())
		}
		runtime.GC() // the finalizer runs in a goroutine of the runtime, a little later
	}
	runtime.KeepAlive(much)
	restore()
	if got := gcPercent(); got != before {
		t.Errorf("%d percent afterwards, want %d", got, before)
	}
}

// A GOGC that the user has set stays as it is.
func TestUsersGCSettingIsKept(t *testing.T) {
	before := gcPercent()
	tuneGarbage(func(name string) (string, bool) { return "50", name == "GOGC" })()
	if got := gcPercent(); got != before {
		t.Errorf("%d percent, want %d", got, before)
	}
}
