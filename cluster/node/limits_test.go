package node

import (
	"errors"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/coordinator/machine"
)

// Only an admin sets a limit: what another role says of one reaches neither the keeper nor the store, where a keeper would
// read it.
func TestOnlyAnAdminSetsALimit(t *testing.T) {
	c := newCluster(t)
	for _, r := range []bus.Role{bus.WorkRole, bus.WatchRole} {
		n := c.joinAs(r)
		defer n.Close()
		if err := n.SetLimit(t.Context(), "l", machine.LaneConfig{Limits: batch.Limits{RPM: 60}}); !errors.Is(err, bus.ErrRole) {
			t.Errorf("%s sets a limit: %v", r, err)
		}
		for o, err := range n.home.List(t.Context(), "limits/", "") {
			t.Errorf("%s has put %s into the store: %v", r, o.Name, err)
		}
	}
}
