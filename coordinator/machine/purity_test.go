package machine

import (
	"testing"

	"github.com/headrace/headrace/internal/purity"
)

// The machine imports nothing that acts, starts no goroutine, has no channel, asks no clock, and
// draws no chance that was not seeded. What is not on the list can start something, wait for
// something, or ask for the time.
func TestPure(t *testing.T) {
	purity.Check(t, 10,
		"cmp", "errors", "fmt", "maps", "math", "math/rand/v2", "runtime/debug", "slices", "strings", "time",
		"github.com/headrace/headrace/limiter", "github.com/headrace/headrace/limiter/laws")
}
