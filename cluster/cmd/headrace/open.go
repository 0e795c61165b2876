package main

import (
	"context"
	"errors"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
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
		return callerOf(calls)
	}
}

// callerOf makes a caller from the flags of this process.
func callerOf(calls *run.Calls) (*node.Caller, error) {
	lane, err := batch.LaneOf(calls.Options()...)
	if err != nil {
		return nil, err
	}
	lines := calls.Job(promptfile.Input{})
	limit := lane
	calls.Bound(&lane)
	// The law for a server of one's own watches how latency responds to the calls of one process. It takes a first
	// refusal as news: over many workers, and from one keeper to the next, that means refusals by the hundred.
	limit.Local = false
	limit.Charge, limit.Periods = batch.Charge{}, batch.Periods{} // the worker's lane makes the cost, and reads the headers
	return &node.Caller{
		Call: func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
			return calls.Call(ctx, it)
		},
		Lines: lines, LimitOf: calls.Account.Limit, Reader: lines.Reader, Limit: limit, Lane: lane, Close: calls.Close,
	}, nil
}

// ended returns the result of a worker: success if it was drained, whatever it had left, unless the calls were cut off.
func ended(calls context.Context, drain <-chan struct{}, err, closed error) error {
	select {
	case <-drain:
		if calls.Err() != nil {
			return exit.End(exit.Interrupted, "interrupted: what was in flight is asked again by others")
		}
		if !errors.Is(err, node.ErrForeign) {
			err = nil
		}
	default:
	}
	if errors.Is(err, node.ErrForeign) {
		return exit.EndOf(exit.Usage, err)
	}
	if err = errors.Join(err, closed); err != nil {
		return exit.EndOf(exit.ItemsFailed, err)
	}
	return nil
}
