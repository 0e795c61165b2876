package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
)

// keptElsewhere is a member of a cluster that is only asked how it stands.
type keptElsewhere struct{}

func (keptElsewhere) Collect(*exposition.Page) {}
func (keptElsewhere) Lane(string, string, batch.LaneConfig) (batch.LaneConfig, error) {
	return batch.LaneConfig{}, nil
}
func (keptElsewhere) Run(context.Context) error               { return nil }
func (keptElsewhere) Standing() (forPrograms any, _ []string) { return nil, []string{"Cluster   here"} }
func (keptElsewhere) Close() error                            { return nil }

// A server in a cluster lets nobody change a limit that the keeper has, and says who can.
func TestLimitsOfAClusterAreNotChangedHere(t *testing.T) {
	c := &control{server: &server{member: keptElsewhere{}, upstream: &upstream{}}}
	for _, word := range []string{ctl.Limit, ctl.Reset} {
		if _, err := c.Do(t.Context(), ctl.Command{Word: word}); err == nil || !strings.Contains(err.Error(), "headrace limits set") {
			t.Errorf("%s: %v", word, err)
		}
	}
	if rows := (inCluster{c.server}).rows(); len(rows) != 1 || (inCluster{&server{}}).rows() != nil {
		t.Errorf("rows %q", rows)
	}
}
