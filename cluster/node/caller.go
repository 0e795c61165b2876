package node

import (
	"context"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A Caller makes the calls of one job: whoever starts a worker knows how, as keys are there and
// not in the cluster.
type Caller struct {
	// Call makes one call. It may be called by any number of goroutines.
	Call func(ctx context.Context, it *promptfile.Item) (provider.Reply, error)
	// Lines is what makes items of requests, and result lines of what became of them. Its Lane
	// names the lane of a model's calls as a run of one process does.
	Lines promptfile.Config
	// LimitOf names the limit that a model's calls are under, unless the job names one; nil: it is Lines.Lane's.
	LimitOf func(model string) string
	// Reader is how the lines of the job's input are read.
	Reader prompts.Config
	// Limit is what a limit of it is like, for the keeper, and Lane the worker's own lane under
	// it: how a call is charged, how long it may take.
	Limit, Lane machine.LaneConfig
	// Close gives back what it holds, once all jobs that ask alike have ended here. Calls that are in flight go on.
	Close func()
}
