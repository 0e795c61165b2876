package event

import (
	"slices"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/observe"
)

// Several lanes of a file are called lanes, by their own names. Without a file they are models.
func TestLanesOfFileAreNoModels(t *testing.T) {
	for account, want := range map[string][2]string{"": {"stopped (1 of 3 models held back)", " of m"}, "a": {"stopped (1 of 3 lanes held back)", " of one/m"}} {
		p := Progress{OfModels: 3, Lanes: []Lane{{Name: "one/m", Account: account, Phase: "stopped", Cause: "no key"}}}
		if got := phaseWords(&p); got != want[0] {
			t.Errorf("%q, want %q", got, want[0])
		}
		lane := observe.Lane{LaneStatus: batch.LaneStatus{Name: "one/m", Account: account}}
		s := scene{p: &observe.Snapshot{OfLanes: 3, Lanes: []observe.Lane{lane}}, lane: &lane}
		if got := s.ofModel(); got != want[1] {
			t.Errorf("%q, want %q", got, want[1])
		}
		cause := "no key"
		if account != "" {
			cause = "one/m: no key"
		}
		if got := Figures(&p); !slices.Contains(got, cause) {
			t.Errorf("%q, want %q", got, cause)
		}
	}
}

// Lanes that stopped with their account stand together, and each of the others for itself.
func TestStoppedLanesByAccount(t *testing.T) {
	got := ByAccount([]StoppedLane{{Lane: "a"}, {Lane: "b", Account: "x"}, {Lane: "c"}, {Lane: "d", Account: "x"}})
	if want := []StoppedLane{{Lane: "a"}, {Lane: "b, d", Account: "x"}, {Lane: "c"}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
