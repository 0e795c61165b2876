package main

import (
	"context"
	"errors"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/provider"
)

// opener makes the callers of jobs: the job names the provider, and this machine has the key.
func opener(s *run.Settings) func(*job.Record) (*node.Caller, error) {
	return func(r *job.Record) (*node.Caller, error) {
		calls, err := s.For(r.Asking.Settings)
		if err != nil {
			return nil, err
		}
		if lanes := calls.Lanes(); lanes != nil {
			return callerOverLanes(calls, lanes), nil
		}
		return callerOf(calls)
	}
}

// callerOverLanes makes a caller for a job that brings lanes. Each is under a limit of its own.
func callerOverLanes(calls *run.Calls, lanes *run.Lanes) *node.Caller {
	lines := lanes.Job(promptfile.Input{})
	return &node.Caller{
		Route: func(q *prompts.Request) (*node.Route, error) {
			of, err := lanes.Of(q)
			if err != nil {
				return nil, err
			}
			r := &node.Route{Name: of.Name, After: of.After, Spill: of.Spill}
			for _, l := range of.Lanes {
				one := node.RouteLane{Limit: l.Limit, Name: l.Name, Weight: l.Weight, Tier: l.Tier, Lane: l.Config}
				one.Known = limitOf(one.Lane)
				lanes.Bound(&one.Lane)
				one.Lane.Window, one.Lane.Account = 0, "" // the keeper keeps both, for all workers
				r.Lanes = append(r.Lanes, one)
			}
			return r, nil
		},
		CallOn: lanes.Call, Lines: lines, Reader: lines.Reader, Close: calls.Close,
	}
}

// limitOf returns what the keeper hears of the limit that a lane is under.
//
// The law for a server of one's own watches how latency responds to the calls of one process. It takes a first
// refusal as news: over many workers, and from one keeper to the next, that means refusals by the hundred.
func limitOf(lane machine.LaneConfig) machine.LaneConfig {
	lane.Local = false
	lane.Charge, lane.Periods = batch.Charge{}, batch.Periods{} // the worker's lane makes the cost, and reads the headers
	return lane
}

// callerOf makes a caller from the flags of this process.
func callerOf(calls *run.Calls) (*node.Caller, error) {
	lane, err := batch.LaneOf(calls.Options()...)
	if err != nil {
		return nil, err
	}
	lines := calls.Job(promptfile.Input{})
	limit := limitOf(lane)
	calls.Bound(&lane)
	return &node.Caller{
		Call: func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
			return calls.Call(ctx, it)
		},
		Lines: lines, LimitOf: calls.Account.Limit, Reader: lines.Reader, Limit: limit, Lane: lane, Close: calls.Close,
	}, nil
}

// workerResult returns the result of a worker: success if it was drained, whatever it had left, unless the calls were cut off.
func workerResult(calls context.Context, drain <-chan struct{}, err, closed error) error {
	select {
	case <-drain:
		if calls.Err() != nil {
			return exit.End(exit.Interrupted, "interrupted: what was in flight is asked again by others")
		}
		if !errors.Is(err, node.ErrOtherStore) {
			err = nil
		}
	default:
	}
	if errors.Is(err, node.ErrOtherStore) {
		return exit.EndOf(exit.Usage, err)
	}
	if err = errors.Join(err, closed); err != nil {
		return exit.EndOf(exit.ItemsFailed, err)
	}
	return nil
}
