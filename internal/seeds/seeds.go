package seeds

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/race"
)

// Each tries seeds in parallel, until one fails the test. It tries usual of them, a tenth under
// the race detector, or as many as the environment says. It divides that number by oneOf, at
// least 1, for tests whose seeds are expensive.
func Each(t *testing.T, usual int, oneOf uint64, try func(seed uint64)) {
	t.Helper()
	if seed, ok := One(); ok {
		try(seed)
		return
	}
	n := uint64(race.Fewer(usual))
	if given, ok := envNumber("SEEDS"); ok {
		n = given
	}
	n = max(1, n/oneOf)
	base, _ := envNumber("SEED_BASE")
	t.Logf("seeds %d to %d (SEED_BASE=%d SEEDS=%d)", base, base+n-1, base, n)
	workers := uint64(runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < n && !t.Failed(); i += workers {
				try(base + i)
			}
		})
	}
	all.Wait()
}

// One returns the only seed to try; false: there is none.
func One() (seed uint64, ok bool) { return envNumber("SEED") }

func envNumber(name string) (uint64, bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}

// A Tail keeps the last lines of a story. The zero Tail is empty.
type Tail struct{ lines []string }

// tailLength is the number of lines kept: those that led to a failure are among them.
const tailLength = 400

// Add adds a line.
func (t *Tail) Add(format string, args ...any) {
	if len(t.lines) == tailLength {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// String returns the lines.
func (t *Tail) String() string { return strings.Join(t.lines, "\n") }
