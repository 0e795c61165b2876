package event

import (
	"slices"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
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
		s := scene{snapshot: &observe.Snapshot{OfLanes: 3, Lanes: []observe.Lane{lane}}, lane: &lane}
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

// Of lanes of a file no sentence speaks of a -c that nobody gave.
func TestLanesOfFileHaveNoConcurrencyFlag(t *testing.T) {
	p := observe.Snapshot{Concurrency: 192, InFlight: 192, Lanes: []observe.Lane{{LaneStatus: batch.LaneStatus{Name: "one/m", Account: "a"}}}}
	p.Bottleneck.By, p.Bottleneck.Next, p.Bottleneck.Factor = limiter.BoundConcurrency, limiter.BoundRequests, 2
	e := Of(&p, Context{})
	if e.BoundText != "the 192 places of all lanes: all 192 calls are in flight" || e.BoundMore != "the limit allows 2.0 times as many: raise the lanes' concurrency" {
		t.Errorf("%q, %q", e.BoundText, e.BoundMore)
	}
}

// Lanes that stopped with their account stand together, and each of the others for itself.
func TestStoppedLanesByAccount(t *testing.T) {
	got := ByAccount([]StoppedLane{{Lane: "a"}, {Lane: "b", Account: "x"}, {Lane: "c"}, {Lane: "d", Account: "x"}})
	if want := []StoppedLane{{Lane: "a"}, {Lane: "b, d", Account: "x"}, {Lane: "c"}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
