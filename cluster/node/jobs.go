package node

import (
	"context"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
)

// opened is a job as this process works on it.
type opened struct {
	record job.Record
	caller *Caller
	source *index.Source
	maker  *promptfile.Maker
	own    func(model string) string // the lane's name, as a run of one process has it
}

// limitOf names the limit that a model's calls are under.
func (o *opened) limitOf(model string) string {
	if o.record.Limit != "" {
		return o.record.Limit
	}
	if o.caller.LimitOf != nil {
		return o.caller.LimitOf(model)
	}
	return o.own(model)
}

// jobs are those that this process has met, each opened once: its caller, and how its lines are read,
// stay what they are while the process lives. Its inputs may become more.
type jobs struct {
	node     *Node
	refusals *refusals
	call     func(*job.Record) (*Caller, error)
	asks     chan jobsAsk
}

type jobsAsk struct {
	name  string
	input int // that its record must name; -1: none
	reply chan jobsReply
}

type jobsReply struct {
	job *opened
	err error
}

func (n *Node) newJobs(r *refusals, load func(*job.Record) (*Caller, error)) *jobs {
	return &jobs{node: n, refusals: r, call: load, asks: make(chan jobsAsk)}
}

// open gives a job, opened before or now.
func (j *jobs) open(ctx context.Context, name string) (*opened, error) {
	return j.openWith(ctx, name, -1)
}

// openWith gives a job whose record names an input. It may have been added after the job was opened.
func (j *jobs) openWith(ctx context.Context, name string, input int) (*opened, error) {
	reply := make(chan jobsReply, 1)
	select {
	case j.asks <- jobsAsk{name, input, reply}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-reply:
		return r.job, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run opens jobs until ctx ends; then it closes them.
func (j *jobs) run(ctx context.Context) {
	known := map[string]*opened{}
	defer func() {
		for _, o := range known {
			o.caller.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-j.asks:
			o, err := known[q.name], error(nil)
			switch {
			case o == nil:
				o, err = j.load(ctx, q.name)
			case q.input >= len(o.record.Inputs):
				o, err = j.reload(ctx, o)
			}
			if err == nil {
				known[q.name] = o
			}
			q.reply <- jobsReply{o, err}
		}
	}
}

func (j *jobs) load(ctx context.Context, name string) (*opened, error) {
	r, err := job.Load(ctx, j.node.home, name)
	if err != nil {
		return nil, err
	}
	c, err := j.call(&r)
	if err != nil {
		j.refusals.refuse(name, "", err.Error(), false)
		return nil, err
	}
	o := &opened{record: r, caller: c, source: j.node.sourceOf(&r, c)}
	o.own = c.Lines.Lane
	lines := c.Lines
	lines.Lane = func(model string) string { return laneOf(o.limitOf(model), name) }
	o.maker = promptfile.NewMaker(lines)
	return o, nil
}

// reload is a job with the record that it has now. Readers that began before go on with the one that they have.
func (j *jobs) reload(ctx context.Context, before *opened) (*opened, error) {
	r, err := job.Load(ctx, j.node.home, before.record.Job)
	if err != nil {
		return nil, err
	}
	o := *before
	o.record, o.source = r, j.node.sourceOf(&r, o.caller)
	return &o, nil
}
