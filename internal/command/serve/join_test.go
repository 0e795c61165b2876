package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/must"
)

// keptElsewhere is a member of a cluster that is only asked how it stands.
type keptElsewhere struct{}

func (keptElsewhere) Collect(*exposition.Page) {}
func (keptElsewhere) Lane(string, string, batch.LaneConfig) (batch.LaneConfig, error) {
	return batch.LaneConfig{}, nil
}
func (keptElsewhere) Uses(string) bool                        { return true }
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
	if rows := (clusterView{c.server}).rows(); len(rows) != 1 || (clusterView{&server{}}).rows() != nil {
		t.Errorf("rows %q", rows)
	}
}

// forgetful is a member of a cluster that forgets the limits of lanes.
type forgetful struct {
	keptElsewhere
	held []string // lanes, in the order in which they were put under limits
	uses map[string]int
	lost bool
}

func (f *forgetful) Lane(lane, _ string, c batch.LaneConfig) (batch.LaneConfig, error) {
	f.held, f.lost = append(f.held, lane), false
	return c, nil
}

func (f *forgetful) Uses(lane string) bool { f.uses[lane]++; return !f.lost }

// A lane is put under its limit once, and again when the cluster has forgotten that. Requests that wait for a lane keep its
// limit in use.
func TestForgottenLimitsAreHeldAgain(t *testing.T) {
	shared := must.Get(batch.NewShared())(t)
	defer shared.Close()
	m := &forgetful{uses: map[string]int{}}
	u := &upstream{shared: shared}
	u.join(m, "")
	for _, lost := range []bool{false, false, true, false} {
		m.lost = lost
		must.Do(t, u.putUnderLimit("m", "limit", batch.LaneConfig{}))
	}
	if len(m.held) != 2 || m.uses["m"] != 3 {
		t.Errorf("%d times under its limit, %d uses", len(m.held), m.uses["m"])
	}
	if u.lanes("m"); m.uses["m"] != 4 {
		t.Errorf("%d uses with a request that waits", m.uses["m"])
	}
}
