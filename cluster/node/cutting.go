package node

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/headrace/headrace/cluster/bus"
)

// index has a worker read the inputs of a job through, who then has it run, or refuses it.
func (f *foreman) index(ctx context.Context, o *overseen) error {
	queued, err := f.bus.Queued(ctx, bus.Tasks, o.record.Job)
	if err == nil && queued == 0 {
		var body []byte
		if body, err = json.Marshal(task{o.record.Job, f.workers()}); err == nil {
			_, err = f.bus.Queue(ctx, bus.Work{Kind: bus.Tasks, Job: o.record.Job, Name: strconv.Itoa(o.record.Version)}, body)
		}
	}
	return f.unqueued(ctx, err)
}
