package keeper

import (
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// Counts counts permits since the keeper began. Permits given but not counted as ended, unused
// or vanished belong to calls in flight or are in a worker's hand.
type Counts struct {
	Given    uint64 // to workers
	Ended    uint64 // calls that ended
	Refused  uint64 // of those: refused for now, with those of an earlier keeper's permits among them
	Unused   uint64 // came back
	Vanished uint64 // no report ever came
}

// Status is a picture of a keeper at one moment.
type Status struct {
	At     time.Time
	Epoch  uint64
	Limits []LimitStatus // in the order in which they were first asked for
}

// LimitStatus is a picture of one limit. Lane holds what its lane believes, what binds it, its
// rate and its level.
type LimitStatus struct {
	Name    string
	Lane    machine.LaneStatus
	Wave    uint64
	Stopped *permit.Cause // nil: it is not
	Counts  Counts
	Jobs    []JobStatus // in the order in which they first asked
}

// JobStatus is a picture of a job under a limit.
type JobStatus struct {
	Name    string
	Weight  float64
	Given   uint64
	Wanted  int // permits that its workers want, and have not been given
	Out     int // permits that its workers have: calls in flight, or permits in hand
	Workers []WorkerStatus
}

// WorkerStatus is a picture of one worker's lane.
type WorkerStatus struct {
	Name   string
	Heard  time.Time
	Given  uint64
	Wanted int
	Out    int
}

// Status takes a picture.
func (k *Keeper) Status(now time.Time) Status {
	now = k.tick(now)
	s := Status{At: now, Epoch: k.epoch}
	lanes := map[string]machine.LaneStatus{}
	for _, lane := range k.machine.Status(now, len(k.order)).Lanes {
		lanes[lane.Name] = lane
	}
	jobs := map[*team]*JobStatus{}
	for _, l := range k.order {
		ls := LimitStatus{Name: l.name, Lane: lanes[l.name], Wave: l.wave, Stopped: l.stopped, Counts: l.counts}
		for _, t := range l.turns {
			ls.Jobs = append(ls.Jobs, JobStatus{Name: t.job, Weight: t.weight, Given: t.given})
		}
		for i, t := range l.turns {
			jobs[t] = &ls.Jobs[i]
		}
		s.Limits = append(s.Limits, ls)
	}
	for _, p := range k.line {
		w := WorkerStatus{Name: p.name.worker, Heard: p.heard, Given: p.given, Wanted: max(0, p.wanted()-p.taken) + len(p.offers), Out: len(p.permits)}
		j := jobs[p.team]
		j.Wanted += w.Wanted
		j.Out += w.Out
		j.Workers = append(j.Workers, w)
	}
	return s
}
