package permit

import (
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
)

// At each decision it is looked whether a permit has grown too old. That makes nothing, however many
// there are.
func TestLookingForOldPermitsMakesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var h hand
	for n := range 256 {
		h.add(inHand{Permit: Permit{Number: Number(n + 1)}, until: noon.Add(time.Second)})
	}
	if n := testing.AllocsPerRun(10, func() { h.dropExpired(noon) }); n > 0 {
		t.Errorf("%v allocations where none is too old", n)
	}
	if gone := h.dropExpired(noon.Add(time.Second)); len(gone) != 256 || len(h.permits) != 0 {
		t.Errorf("%d have gone, %d are left", len(gone), len(h.permits))
	}
}
