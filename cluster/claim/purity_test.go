package claim

import (
	"testing"

	"github.com/headrace/headrace/cluster/internal/purity"
)

// This is all that claims may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 9,
		"cmp", "errors", "fmt", "slices", "strconv", "strings", "time",
	)
}
