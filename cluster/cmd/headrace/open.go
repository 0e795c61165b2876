package main

import (
	"context"
	"errors"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command"
	"github.com/headrace/headrace/provider"
)

// opener makes the calls of jobs: whom a job says, with this machine's key.
func opener(s *command.Settings) func(*job.Record) (*node.Caller, error) {
	return func(r *job.Record) (*node.Caller, error) {
		calls, err := s.For(r.Asking.Settings)
		if err != nil {
			return nil, err
		}
		return callerOf(calls)
	}
}

// callerOf makes calls by the flags of this process.
func callerOf(calls *command.Calls) (*node.Caller, error) {
	lane, err := batch.LaneOf(calls.Options()...)
	if err != nil {
		return nil, err
	}
	lines := calls.Job(promptfile.Input{})
	limit := lane
	calls.Bound(&lane)
	// The law for a server of one's own watches how latency answers to what one process sends, and takes a first
	// refusal as news: over many workers, and from one keeper to the next, that is refusals by the hundred.
	limit.Local = false
	limit.Charge, limit.Periods = batch.Charge{}, batch.Periods{} // the worker's lane makes the cost, and reads the headers
	return &node.Caller{
		Call: func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
			return calls.Call(ctx, it)
		},
		Lines: lines, LimitOf: calls.Limit, Reader: lines.Reader, Limit: limit, Lane: lane, Close: calls.Close,
	}, nil
}

// ended is how a worker has ended: well if it was drained, whatever it had left.
func ended(calls context.Context, drain <-chan struct{}, err, closed error) error {
	select {
	case <-drain:
		if calls.Err() != nil {
			return command.End(command.ExitInterrupted, "interrupted: what was in flight is asked again by others")
		}
		if !errors.Is(err, node.ErrForeign) {
			err = nil
		}
	default:
	}
	if errors.Is(err, node.ErrForeign) {
		return command.EndOf(command.ExitUsage, err)
	}
	if err = errors.Join(err, closed); err != nil {
		return command.EndOf(command.ExitItemsFailed, err)
	}
	return nil
}
