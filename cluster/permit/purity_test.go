package permit

import (
	"testing"

	"github.com/headrace/headrace/cluster/internal/purity"
)

// This is all that a law of permits may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 7,
		"cmp", "errors", "fmt", "math", "math/rand/v2", "slices", "strings", "time", "unicode/utf8",
		"github.com/headrace/headrace/coordinator/machine", "github.com/headrace/headrace/limiter", "github.com/headrace/headrace/provider",
	)
}
