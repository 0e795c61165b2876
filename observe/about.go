package observe

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
)

// runWide lists the bounds that belong to no lane.
var runWide = map[Bound]bool{
	NoBound: true, Output: true, concurrency: true,
	boundOf(machine.BoundBackoff): true, boundOf(machine.BoundInput): true, boundOf(machine.BoundTail): true,
	boundOf(machine.BoundSlept): true, boundOf(machine.BoundPaused): true, boundOf(machine.BoundDraining): true, boundOf(machine.BoundStopped): true,
}

// ownBound returns what holds a lane's next call back: the lane's own bound, or the run's
// bound if it applies to all lanes.
func ownBound(l *batch.LaneStatus, run *machine.RunStatus) Bound {
	if l.Bound != machine.BoundNone {
		return boundOf(l.Bound)
	}
	if b := boundOf(run.Bound); runWide[b] {
		return b
	}
	return NoBound
}

// about returns the lane that matters, nil if there is none. It names that lane in h if one
// of several lanes holds the run back.
func (r *Recorder) about(h *Held, s *batch.Status) *batch.LaneStatus {
	critical := r.critical(s)
	if critical == nil || s.Known == 1 || runWide[h.By] {
		return critical
	}
	var held []*batch.LaneStatus
	for k := range s.Lanes {
		if l := &s.Lanes[k]; r.lane(r.names.slot(l.Name)).heldBy() == h.By {
			if l == critical {
				held = []*batch.LaneStatus{l}
				break
			}
			held = append(held, l)
		}
	}
	if len(held) != 1 {
		return critical
	}
	h.Lane = held[0].Name
	return held[0]
}

// critical returns the lane that ends last, or the busiest one if that is not known.
func (r *Recorder) critical(s *batch.Status) (critical *batch.LaneStatus) {
	longest := -1.0
	for k := range s.Lanes {
		l := &s.Lanes[k]
		if pending := r.lane(r.names.slot(l.Name)).pending(); critical == nil || pending > longest {
			critical, longest = l, pending
		}
	}
	return critical
}
