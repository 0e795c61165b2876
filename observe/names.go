package observe

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// OtherLanes is the name for all lanes after the first MaxLanes, which are counted together.
const OtherLanes = "other"

// The slots in which calls and items are counted: one for each lane that has a name here,
// one for all others, and one for items that ended on no lane.
const (
	otherSlot = MaxLanes
	noSlot    = MaxLanes + 1
	slots     = MaxLanes + 2
)

// names gives lanes their slots, first come, first served. The table is replaced and never
// changed, so that workers read it without a lock.
type names struct {
	mu    sync.Mutex // for adding lanes
	table atomic.Pointer[map[string]int]
}

// slot returns the slot in which a lane is counted.
func (n *names) slot(lane string) int {
	if lane == "" {
		return noSlot
	}
	if table := n.table.Load(); table != nil {
		if k, ok := (*table)[lane]; ok {
			return k
		}
		if len(*table) == MaxLanes {
			return otherSlot
		}
	}
	return n.add(lane)
}

func (n *names) add(lane string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	table := map[string]int{}
	if old := n.table.Load(); old != nil {
		table = maps.Clone(*old)
	}
	if k, ok := table[lane]; ok {
		return k
	}
	k := len(table)
	if k == MaxLanes {
		return otherSlot
	}
	table[strings.Clone(lane)] = k // it may be a piece of an item's text
	n.table.Store(&table)
	return k
}

// all returns the names, by slot.
func (n *names) all() []string {
	var all []string
	if table := n.table.Load(); table != nil {
		all = make([]string, len(*table))
		for name, k := range *table {
			all[k] = name
		}
	}
	return all
}
