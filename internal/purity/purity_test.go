package purity

import "testing"

// A check that sees nothing would always pass.
func TestPureSees(t *testing.T) {
	for body, faults := range map[string]int{
		`import "sync"`: 1, `import "context"`: 1, `import "os"`: 1, `import "errors"`: 0,
		`import clock "time"; var d = clock.Second`: 1, `import . "time"; var x = Now`: 1,
		`import "time"; var x = time.Now`: 1, `import "time"; const d = time.Second`: 0, `import "time"; func f() { time.Sleep(1) }`: 1,
		`import "math/rand/v2"; var x = rand.Int()`: 1, `import "math/rand/v2"; func f(r *rand.Rand) int { return r.Int() }`: 0,
		`import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`: 0,
		`func f() { go f() }`: 1, `var c chan int`: 1, `func f(c <-chan int) {}`: 1, `func f() { select {} }`: 1, `func f() { c <- 1 }`: 1,
		`import "runtime/debug"; func f() { debug.FreeOSMemory() }`: 1, `import "runtime/debug"; var s = debug.Stack()`: 0,
	} {
		got, err := Pure("x.go", "package x;"+body, oneOf("time", "math/rand/v2", "errors", "runtime/debug"))
		if err != nil || len(got) != faults {
			t.Errorf("%s: %v (%v), want %d", body, got, err, faults)
		}
	}
}

func TestLockFreeSees(t *testing.T) {
	for body, faults := range map[string]int{
		`import "sync"; var m sync.Mutex`: 1, `import "sync/atomic"; var n atomic.Int64`: 1, `import _ "sync"`: 1,
		`import "time"; var x = time.Now()`: 1, `import "time"; var now = time.Now`: 1, `import "time"; func f() { <-time.After(1) }`: 1,
		`import wall "time"; var x = wall.Since(wall.Time{})`: 1, `import . "time"; var x = Now()`: 1,
		`import ("golang.org/x/sync/errgroup"; "time"); var g errgroup.Group; const d = time.Second`: 0,
		`import "math/rand/v2"; func f() { go f(); rand.Int() }`:                                     0,
	} {
		if got, err := LockFree("x.go", "package x;"+body); err != nil || len(got) != faults {
			t.Errorf("%s: %v (%v), want %d", body, got, err, faults)
		}
	}
}
