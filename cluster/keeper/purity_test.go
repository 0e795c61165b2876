package keeper

import (
	"testing"

	"github.com/headrace/headrace/cluster/internal/purity"
)

// This is all that a keeper may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 6,
		"cmp", "errors", "fmt", "maps", "math", "slices", "time",
		"github.com/headrace/headrace/cluster/permit", "github.com/headrace/headrace/coordinator/machine", "github.com/headrace/headrace/limiter",
	)
}
