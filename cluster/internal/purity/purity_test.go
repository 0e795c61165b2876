package purity

import "testing"

// A check that sees nothing would always pass.
func TestSees(t *testing.T) {
	allowed := []string{"time", "math/rand/v2", "errors"}
	for body, faults := range map[string]int{
		`import "sync"`: 1, `import "context"`: 1, `import "os"`: 1, `import "errors"`: 0,
		`import clock "time"; var d = clock.Second`: 1, `import . "time"; var x = Now`: 1,
		`import "time"; var x = time.Now`: 1, `import "time"; const d = time.Second`: 0, `import "time"; func f() { time.Sleep(1) }`: 1,
		`import "math/rand/v2"; var x = rand.Int()`: 1, `import "math/rand/v2"; func f(r *rand.Rand) int { return r.Int() }`: 0,
		`func f() { go f() }`: 1, `var c chan int`: 1, `func f() { select {} }`: 1,
	} {
		if got, err := Faults("x.go", "package x;"+body, allowed); err != nil || len(got) != faults {
			t.Errorf("%s: %v (%v), want %d", body, got, err, faults)
		}
	}
}
