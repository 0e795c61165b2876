package node

import (
	"context"
	"encoding/json"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// opened is a job as this process works on it.
type opened struct {
	record job.Record
	caller *shared
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

// shared is a caller, and how many jobs make their calls by it: all that ask alike.
type shared struct {
	*Caller
	asking string
	jobs   int
}

// jobs are those that this process works on, each opened once: its caller, and how its lines are read,
// stay what they are until it ends. Its inputs may become more.
type jobs struct {
	node     *Node
	refusals *refusals
	call     func(*job.Record) (*Caller, error)
	asks     chan jobsAsk
	ended    chan string

	// Of run alone.
	known   map[string]*opened
	callers map[string]*shared // by what is asked
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
	return &jobs{node: n, refusals: r, call: load, asks: make(chan jobsAsk), ended: make(chan string), known: map[string]*opened{}, callers: map[string]*shared{}}
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
	defer func() {
		for _, c := range j.callers {
			c.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-j.asks:
			o, err := j.known[q.name], error(nil)
			switch {
			case o == nil:
				o, err = j.load(ctx, q.name)
			case q.input >= len(o.record.Inputs):
				o, err = j.reload(ctx, o)
			}
			if err == nil {
				j.known[q.name] = o
			}
			q.reply <- jobsReply{o, err}
		case name := <-j.ended:
			j.forget(name)
		}
	}
}

func (j *jobs) load(ctx context.Context, name string) (*opened, error) {
	r, err := job.Load(ctx, j.node.home, name)
	if err != nil {
		return nil, err
	}
	c, err := j.callerOf(&r)
	if err != nil {
		j.refusals.refuse(name, "", err.Error(), false)
		return nil, err
	}
	o := &opened{record: r, caller: c, source: j.node.sourceOf(&r, c.Caller)}
	o.own = c.Lines.Lane
	lines := c.Lines
	lines.Lane = func(model string) string { return laneOf(o.limitOf(model), name) }
	o.maker = promptfile.NewMaker(lines)
	c.jobs++
	return o, nil
}

// callerOf is the caller of a job: that of another which asks alike, if there is one.
func (j *jobs) callerOf(r *job.Record) (*shared, error) {
	asking, err := json.Marshal(&r.Asking)
	if err != nil {
		return nil, err
	}
	if c := j.callers[string(asking)]; c != nil {
		return c, nil
	}
	c, err := j.call(r)
	if err != nil {
		return nil, err
	}
	s := &shared{Caller: c, asking: string(asking)}
	j.callers[s.asking] = s
	return s, nil
}

// end says that a job has ended: it is opened anew if anything of it comes.
func (j *jobs) end(ctx context.Context, name string) {
	select {
	case j.ended <- name:
	case <-ctx.Done():
	}
}

// forget gives back what a job holds.
func (j *jobs) forget(name string) {
	o := j.known[name]
	if o == nil {
		return
	}
	delete(j.known, name)
	if o.caller.jobs--; o.caller.jobs == 0 {
		delete(j.callers, o.caller.asking)
		o.caller.Close()
	}
}

// reload is a job with the record that it has now. Readers that began before go on with the one that they have.
func (j *jobs) reload(ctx context.Context, before *opened) (*opened, error) {
	r, err := job.Load(ctx, j.node.home, before.record.Job)
	if err != nil {
		return nil, err
	}
	o := *before
	o.record, o.source = r, j.node.sourceOf(&r, o.caller.Caller)
	return &o, nil
}

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
