package node

import (
	"cmp"
	"time"

	"github.com/headrace/headrace/cluster/bus"
)

// DefaultTerm is how long a keeper is one without renewing it, where there is one hub: four times
// as long as it takes to notice a lost answer and ask again. With three hubs the death of the
// leading one takes 3 to 4 s until another leads: ThreeTerm.
const (
	DefaultTerm = 3 * time.Second
	ThreeTerm   = 6 * time.Second
)

// Times are what the processes of a cluster must agree on.
type Times struct {
	AckWait time.Duration // after how long without a heartbeat a chunk is given to somebody else; 0: bus.DefaultAckWait
	Term    time.Duration // of a keeper; 0: DefaultTerm
}

func (t Times) withDefaults() Times {
	return Times{AckWait: cmp.Or(t.AckWait, bus.DefaultAckWait), Term: cmp.Or(t.Term, DefaultTerm)}
}
