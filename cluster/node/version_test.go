package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
)

// The version that counts is the latest keeper's: what an earlier one has said may come after it, and one that says
// none is of the first version. A speaker that is not the keeper of its epoch by the store is not heard, and the store is
// asked once a second at most.
func TestAnAccordFollowsTheLatestKeeper(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	for epoch := range uint64(7) {
		if err := store.CreateBytes(t.Context(), s, keeping.Numbered("keeper/epoch-", epoch), []byte("keeper\n")); err != nil {
			t.Fatal(err)
		}
	}
	clock := clockwork.NewFakeClock()
	a := &accord{Node: &Node{clock: clock, home: s, epochs: keeping.NewEpochs(s, clock)}}
	const other = permit.Version + 1
	for _, said := range []struct {
		by      string
		body    string
		after   time.Duration
		differs bool
	}{
		{"keeper", `nothing`, keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":9,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":%d,"v":%d}`, uint64(1)<<62, other), keeping.BelieveEvery, false},
		{"liar", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), keeping.BelieveEvery - 1, false},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), 1, true},
		{"keeper", fmt.Sprintf(`{"epoch":2,"v":%d}`, permit.Version), keeping.BelieveEvery, true},
		{"liar", fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version), keeping.BelieveEvery, true},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":2,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":5,"v":%d}`, other), keeping.BelieveEvery, true},
		{"keeper", `{"epoch":6}`, keeping.BelieveEvery, permit.Version != 1},
	} {
		clock.Advance(said.after)
		a.hear(t.Context(), bus.Word{About: said.by, Body: json.RawMessage(said.body)})
		if a.differs() != said.differs {
			t.Fatalf("after %s of %s the keeper differs: %v", said.body, said.by, a.differs())
		}
	}
}
