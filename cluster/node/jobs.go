package node

import (
	"context"
	"encoding/json"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/misfit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// openedJob is a job on which this process works, with all that its calls need.
type openedJob struct {
	record  job.Record
	caller  *sharedCaller
	source  *index.Source
	maker   *promptfile.Maker
	ownLane func(model string) string // the lane's name, as a run of one process has it
	routes  *routes                   // nil: each model has one lane
	*payer                            // nil: nothing bounds what it costs
	answers *misfit.Answers           // nil: each answer is a result
}

// limitOf names the limit for a model's calls.
func (o *openedJob) limitOf(model string) string {
	if o.record.Limit != "" {
		return o.record.Limit
	}
	if o.caller.LimitOf != nil {
		return o.caller.LimitOf(model)
	}
	return o.ownLane(model)
}

// sharedCaller is a caller, and the number of jobs that call by it: all those with the same [job.Asking].
type sharedCaller struct {
	*Caller
	asking string
	jobs   int
}

// jobs holds the jobs that this process works on, each opened once. A job's caller and the reading of its lines
// stay the same until it ends. Its inputs may become more.
type jobs struct {
	node      *Node
	refusals  *refusals
	newCaller func(*job.Record) (*Caller, error)
	requests  chan openRequest
	ended     chan string

	// Only run uses these.
	known   map[string]*openedJob
	callers map[string]*sharedCaller // by the asking, as JSON
}

type openRequest struct {
	name  string
	input int // an input that its record must name; -1: none
	reply chan openReply
}

type openReply struct {
	job *openedJob
	err error
}

func (n *Node) newJobs(r *refusals, load func(*job.Record) (*Caller, error)) *jobs {
	return &jobs{node: n, refusals: r, newCaller: load, requests: make(chan openRequest), ended: make(chan string), known: map[string]*openedJob{}, callers: map[string]*sharedCaller{}}
}

// open returns a job, opened before or now.
func (j *jobs) open(ctx context.Context, name string) (*openedJob, error) {
	return j.openWith(ctx, name, -1)
}

// openWith returns a job whose record names an input. The input may have been added after the job was opened.
func (j *jobs) openWith(ctx context.Context, name string, input int) (*openedJob, error) {
	reply := make(chan openReply, 1)
	select {
	case j.requests <- openRequest{name, input, reply}:
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
		case q := <-j.requests:
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
			q.reply <- openReply{o, err}
		case name := <-j.ended:
			j.forget(name)
		}
	}
}

// load opens a job, and counts it as a user of its caller. A job that this machine cannot call is
// noted as refused here.
func (j *jobs) load(ctx context.Context, name string) (*openedJob, error) {
	r, err := job.Load(ctx, j.node.home, name)
	if err != nil {
		return nil, err
	}
	c, err := j.callerOf(&r)
	if err != nil {
		j.refusals.refuse(name, "", err.Error(), false)
		return nil, err
	}
	o := &openedJob{record: r, caller: c, source: j.node.sourceOf(&r, c.Caller)}
	o.ownLane = c.Lines.Lane
	lines := c.Lines
	lines.Lane = func(model string) string { return laneName(o.limitOf(model), name) }
	if o.routes = routesOf(name, c.Caller); o.routes != nil {
		lines = o.routes.configFor(lines)
	}
	o.maker = promptfile.NewMaker(lines)
	if len(r.Caps) > 0 {
		o.payer = j.payerOf(&r, priceOf(&lines, o.routes))
	}
	if lines.Check != nil {
		o.answers = j.answersOf(name, lines.CheckRetries)
	}
	c.jobs++
	return o, nil
}

// answersOf returns the count of a job's answers that must fit its schema. Too many misfits stop the job.
func (j *jobs) answersOf(name string, retries int) *misfit.Answers {
	return misfit.New(misfit.Config{
		Store: j.node.home, Job: name, Who: j.node.Name(), Retries: retries,
		Stop: func(ctx context.Context, why string) bool {
			r, changed := j.node.stopJob(ctx, name, why, false)
			return changed || r.State == job.Stopped || r.State == job.Canceled
		},
	})
}

// callerOf returns the caller of a job, shared with another job of the same [job.Asking] if there is one.
func (j *jobs) callerOf(r *job.Record) (*sharedCaller, error) {
	asking, err := json.Marshal(&r.Asking)
	if err != nil {
		return nil, err
	}
	if c := j.callers[string(asking)]; c != nil {
		return c, nil
	}
	c, err := j.newCaller(r)
	if err != nil {
		return nil, err
	}
	s := &sharedCaller{Caller: c, asking: string(asking)}
	j.callers[s.asking] = s
	return s, nil
}

// reportEnd has run release a job that has ended. If another chunk of the job comes, it is opened anew.
func (j *jobs) reportEnd(ctx context.Context, name string) {
	select {
	case j.ended <- name:
	case <-ctx.Done():
	}
}

// forget closes an opened job, and its caller if no other job uses that.
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

// reload returns a copy of an opened job with its present record. Readers that began before keep the old one.
func (j *jobs) reload(ctx context.Context, before *openedJob) (*openedJob, error) {
	r, err := job.Load(ctx, j.node.home, before.record.Job)
	if err != nil {
		return nil, err
	}
	o := *before
	o.record, o.source = r, j.node.sourceOf(&r, o.caller.Caller)
	return &o, nil
}

// A Caller makes the calls of one job. The starter of a worker supplies it, as keys are on the worker's machine and
// not in the cluster.
type Caller struct {
	// Call makes one call. It may be called by any number of goroutines.
	Call func(ctx context.Context, it *promptfile.Item) (provider.Reply, error)
	// Lines turns requests into items, and ends of items into result lines. Its Lane names the lane of a model's
	// calls as a run of one process does.
	Lines promptfile.Config
	// Route returns the lanes that may take a line, and CallOn makes a call on one of them, by its name. The error says
	// why there is none. Any number of goroutines may call both. Nil: each model has one lane, and Call makes its calls.
	Route  func(*prompts.Request) (*Route, error)
	CallOn func(ctx context.Context, it *promptfile.Item, lane string) (provider.Reply, error)
	// LimitOf names the limit for a model's calls, unless the job names one; nil: Lines.Lane names it.
	LimitOf func(model string) string
	// Reader says how to read the lines of the job's input.
	Reader prompts.Config
	// Limit describes its limits to the keeper. Lane describes the worker's own lane under them: how a call is
	// charged, and how long it may take.
	Limit, Lane machine.LaneConfig
	// Close releases what it holds, once all jobs with the same [job.Asking] have ended here. Calls in flight go on.
	Close func()
}
