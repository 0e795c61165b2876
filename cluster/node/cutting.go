package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
)

// index has the segments of a job's inputs read through; when all are, it is cut, or refused.
func (f *foreman) index(ctx context.Context, o *overseen) error {
	segments := index.Segments(&o.record)
	have, err := index.Indexed(ctx, f.home, o.record.Job)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(segments, func(s index.Segment) bool { return slices.Contains(have, s.Number) })
	if len(missing) == 0 {
		return f.cut(ctx, o)
	}
	queued, err := f.bus.Queued(ctx, bus.Tasks, o.record.Job)
	if err == nil && queued < len(missing) {
		err = f.queueSegments(ctx, missing)
	}
	return f.unqueued(ctx, err)
}

// queueSegments puts segments into the queue. One that is there is refused by it.
func (f *foreman) queueSegments(ctx context.Context, segments []index.Segment) error {
	for _, s := range segments {
		body, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := f.bus.Queue(ctx, bus.Work{Kind: bus.Tasks, Job: s.Job, Name: strconv.Itoa(s.Number)}, body); err != nil {
			return err
		}
	}
	return nil
}

// cut makes the plan of a job, and has it run, or refuses it.
func (f *foreman) cut(ctx context.Context, o *overseen) error {
	source := &index.Source{Store: f.home, Record: o.record, Open: f.openOther}
	old, err := index.LoadPlan(ctx, f.home, &o.record)
	if err != nil {
		return err
	}
	plan, err := source.Merge(ctx, old, f.workers(), f.objectName())
	if err != nil {
		return err
	}
	name, err := plan.Save(ctx, f.home, f.objectName())
	if err != nil {
		return err
	}
	return f.begin(ctx, o, plan, name)
}

// begin has a job run by its plan, or refuses it.
func (f *foreman) begin(ctx context.Context, o *overseen, plan *index.Plan, name string) error {
	_, err := job.Change(ctx, f.home, o.record.Job, func(r *job.Record) error {
		if r.Version != o.record.Version {
			return errChanged
		}
		r.Plan, r.State = name, job.Running
		if bad := plan.Refused(); bad != nil {
			r.State, r.Why = job.Refused, bad.Error()
		}
		return nil
	})
	o.stale = true
	if errors.Is(err, errChanged) {
		return nil
	}
	return err
}

// errChanged says that somebody else has changed a job meanwhile.
var errChanged = errors.New("node: the job has changed")
