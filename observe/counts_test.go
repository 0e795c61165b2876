package observe

import (
	"fmt"
	"testing"
)

// The first lanes have slots of their own, and all others share one. An item that ended on no
// lane is in neither. A lane that comes too late for the last own slot is among the others.
func TestNames(t *testing.T) {
	var n names
	for k := range MaxLanes {
		if got := n.slot(fmt.Sprint("lane ", k)); got != k {
			t.Errorf("lane %d has slot %d", k, got)
		}
	}
	if n.slot("late") != otherSlot || n.add("late") != otherSlot || n.slot("") != noSlot || n.slot("lane 7") != 7 || n.add("lane 7") != 7 {
		t.Errorf("late %d, none %d, lane 7 %d", n.slot("late"), n.slot(""), n.slot("lane 7"))
	}
	if n.nameOf(7) != "lane 7" || n.nameOf(otherSlot) != "" {
		t.Errorf("%q, %q", n.nameOf(7), n.nameOf(otherSlot))
	}
}
