package node

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/permit"
)

// The version that counts is the latest keeper's: what an earlier one has said may come after it, and one that says
// none is of the first version.
func TestAnAccordFollowsTheLatestKeeper(t *testing.T) {
	a := &accord{}
	for _, said := range []struct {
		body    string
		differs bool
	}{
		{`nothing`, false},
		{fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version+1), true},
		{fmt.Sprintf(`{"epoch":2,"v":%d}`, permit.Version), true},
		{fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version), false},
		{fmt.Sprintf(`{"epoch":2,"v":%d}`, permit.Version+1), false},
		{fmt.Sprintf(`{"epoch":5,"v":%d}`, permit.Version+1), true},
		{`{"epoch":6}`, permit.Version != 1},
	} {
		a.hear(bus.Word{Body: json.RawMessage(said.body)})
		if a.differs() != said.differs {
			t.Fatalf("after %s the keeper differs: %v", said.body, a.differs())
		}
	}
}
