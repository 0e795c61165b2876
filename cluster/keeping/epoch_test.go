package keeping

import (
	"context"
	"iter"
	"path/filepath"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
)

// farEpoch is one that no keeper has ever had.
const farEpoch = 1 << 62

// A counted store counts how often it is listed.
type counted struct {
	store.Store
	lists int
}

func (c *counted) List(ctx context.Context, prefix, from string) iter.Seq2[store.Object, error] {
	c.lists++
	return c.Store.List(ctx, prefix, from)
}

// An epoch is believed once the store has it, and costs no look from then on. One that the store does not have costs one
// look in each interval, however many messages name it.
func TestAnEpochIsBelievedIfTheStoreHasIt(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	clock, looks := clockwork.NewFakeClock(), &counted{Store: s}
	e := NewEpochs(looks, clock)
	says := func(epoch uint64, want bool, lists int) {
		t.Helper()
		for range 100 {
			if e.Believes(t.Context(), epoch) != want || looks.lists != lists {
				t.Fatalf("epoch %d is believed: %v, want %v; %d looks, want %d", epoch, !want, want, looks.lists, lists)
			}
		}
	}
	says(0, true, 0)
	says(farEpoch, false, 1)
	if err := store.CreateBytes(t.Context(), s, Numbered(epochPrefix, 3), nil); err != nil {
		t.Fatal(err)
	}
	says(3, false, 1)
	clock.Advance(BelieveEvery)
	says(3, true, 2)
	says(2, true, 2)
	says(farEpoch, false, 2)
	clock.Advance(BelieveEvery)
	says(farEpoch, false, 3)
}
