package node

import (
	"context"
	"math"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

type prompt = prompts.Request

// tellChanged announces that a job has changed. If the message is lost, the store shows the change.
func (n *Node) tellChanged(name string) { _ = n.bus.Say(bus.News, name, keeping.News{}) }

// sayKeeper publishes the state of all limits.
func (n *Node) sayKeeper(s keeper.Status) { _ = n.bus.Say(bus.Keeper, n.Name(), pictureOf(&s)) }

// WorkerStatus is a worker's report of itself, sent once a second.
type WorkerStatus struct {
	At       time.Time                     `json:"at"` // by its own clock, for people
	InFlight int                           `json:"in_flight"`
	Done     uint64                        `json:"done"` // items that ended here, since it began
	Calls    uint64                        `json:"calls"`
	Refused  uint64                        `json:"refused"`
	Limits   map[string]machine.LaneConfig `json:"limits,omitempty"` // properties of the limits that it works under

	UpS         float64            `json:"up_s"` // seconds since it began, so that no clocks need to be compared
	Concurrency int                `json:"concurrency"`
	Jobs        map[string]JobWork `json:"jobs,omitempty"`    // jobs that it has made calls for, at most jobsSaid
	Refuses     map[string]Refusal `json:"refuses,omitempty"` // jobs that it cannot work on, at most jobsSaid
}

// statusEvery is the time between two reports of a worker.
const statusEvery = time.Second

// jobsSaid bounds the jobs in a worker's report: its busiest.
const jobsSaid = 32

// JobWork is a worker's work for one job.
type JobWork struct {
	InFlight  int    `json:"in_flight"`
	Waiting   int    `json:"waiting"` // items that wait for another call
	Done      uint64 `json:"done"`    // items that ended here, since it began
	Calls     uint64 `json:"calls"`   // likewise
	Refused   uint64 `json:"refused"`
	Cooldowns uint64 `json:"cooldowns"`
	MeanMS    int64  `json:"latency_ms"`
	P95MS     int64  `json:"p95_ms"`
}

// jobsOf adds up the lanes of each job.
func jobsOf(lanes []batch.LaneStatus) map[string]JobWork {
	all := map[string]JobWork{}
	for i := range lanes {
		l := &lanes[i]
		_, name := partsOf(l.Name)
		if name == "" || l.Name == neverUsed {
			continue
		}
		j := all[name]
		j.InFlight, j.Waiting = j.InFlight+l.InFlight, j.Waiting+l.Parked+l.Delayed
		j.Done, j.Calls, j.Refused = j.Done+l.Counters.Settled+l.Counters.FailedLater, j.Calls+l.Counters.Calls, j.Refused+l.Counters.Throttled
		j.Cooldowns = max(j.Cooldowns, l.Counters.Cooldowns)
		j.MeanMS, j.P95MS = max(j.MeanMS, l.Latency.Milliseconds()), max(j.P95MS, l.P95.Milliseconds())
		all[name] = j
	}
	return all
}

// sayLimit passes on the properties of a limit for the next report.
func (w *worker) sayLimit(limit string, o *opened) {
	c := o.caller.Limit
	c.Maker = nil
	select {
	case w.limits <- keeping.LimitSet{Name: limit, Lane: c}:
	default: // the next new lane passes it on
	}
}

// sayStatus reports the worker's state once a second.
func (w *worker) sayStatus(ctx context.Context) {
	ticker := w.clock.NewTicker(statusEvery)
	defer ticker.Stop()
	s, began := WorkerStatus{Limits: map[string]machine.LaneConfig{}}, w.clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-w.limits:
			s.Limits[l.Name] = l.Lane
		case <-ticker.Chan():
		}
		s.UpS, s.Refuses = w.clock.Since(began).Seconds(), w.refusals.said()
		w.takeStatus(ctx, &s)
		_ = w.bus.Say(bus.Status, w.Name(), s)
	}
}

func (w *worker) takeStatus(ctx context.Context, s *WorkerStatus) {
	ctx, stop := context.WithTimeout(ctx, statusEvery)
	defer stop()
	s.At = w.clock.Now().UTC()
	b, err := w.control.Status(ctx, jobsSaid)
	if err != nil {
		return
	}
	s.take(&b)
	s.Jobs, s.Concurrency = jobsOf(b.Lanes), w.how.Concurrency
}

func (s *WorkerStatus) take(b *batch.Status) {
	c := b.Totals
	s.InFlight, s.Done, s.Calls, s.Refused = int(c.Calls-c.Settled-c.HandedOver), c.Settled+c.FailedLater, c.Calls, c.Throttled
}

// failedBefore reports which items of a chunk a round tries again.
func (w *worker) failedBefore(ctx context.Context, c job.Chunk) (func(string) bool, error) {
	failed, err := parts.Again(ctx, w.home, &c)
	return func(key string) bool { return failed[key] }, err
}

// A Picture is the state of all limits of a cluster, as its keeper reports each second.
type Picture struct {
	Version int            `json:"v"`     // of the messages between it and workers
	Epoch   uint64         `json:"epoch"` // of the keeper
	Limits  []LimitPicture `json:"limits"`
}

// A LimitPicture is the state of one limit.
type LimitPicture struct {
	Name     string       `json:"name"`
	Phase    string       `json:"phase"`
	InFlight int          `json:"in_flight"`
	Why      string       `json:"why,omitempty"`    // reason why the next call waits; "": it does not wait
	Bound    string       `json:"bound"`            // the word for what holds its calls back, as in a run; "": nothing
	WaitS    float64      `json:"wait_s,omitempty"` // seconds of that wait, as far as time alone decides
	Known    []Known      `json:"known,omitempty"`  // the law's beliefs about it
	Pace     *float64     `json:"per_second"`       // calls that may leave; null: as many as are wanted
	Given    uint64       `json:"given"`            // permits since the keeper began, as the next three
	Ended    uint64       `json:"ended"`
	Refused  uint64       `json:"refused"`
	Vanished uint64       `json:"vanished"`
	Stopped  string       `json:"stopped,omitempty"` // why; "": it is not
	Jobs     []JobPicture `json:"jobs"`
}

// Known is the law's belief about one limited thing.
type Known struct {
	Limit     string  `json:"limit"` // requests, tokens, input_tokens or output_tokens
	PerSecond float64 `json:"per_second"`
	Source    string  `json:"source"` // told, learned or seen; seen is by headers
}

// A JobPicture is the state of a job under a limit.
type JobPicture struct {
	Job     string  `json:"job"`
	Weight  float64 `json:"weight"`
	Given   uint64  `json:"given"`
	Wanted  int     `json:"wanted"`
	Out     int     `json:"out"`
	Workers int     `json:"workers"`
}

func pictureOf(s *keeper.Status) Picture {
	p := Picture{Version: permit.Version, Epoch: s.Epoch, Limits: make([]LimitPicture, 0, len(s.Limits))}
	for i := range s.Limits {
		p.Limits = append(p.Limits, limitOf(&s.Limits[i]))
	}
	return p
}

func limitOf(l *keeper.LimitStatus) LimitPicture {
	p := LimitPicture{
		Name: l.Name, Phase: l.Lane.Phase.String(), InFlight: l.Lane.InFlight, Jobs: make([]JobPicture, 0, len(l.Jobs)),
		Given: l.Counts.Given, Ended: l.Counts.Ended, Refused: l.Counts.Refused, Vanished: l.Counts.Vanished,
	}
	if pace := l.Lane.Rate; !math.IsInf(pace, 0) && !math.IsNaN(pace) {
		p.Pace = &pace
	}
	p.Why, p.Bound, p.WaitS, p.Known = l.Lane.Why, l.Lane.Bound.String(), l.Lane.Wait.Seconds(), knownOf(&l.Lane.View)
	if l.Stopped != nil {
		p.Stopped = l.Stopped.Text
	}
	for _, j := range l.Jobs {
		p.Jobs = append(p.Jobs, JobPicture{j.Name, j.Weight, j.Given, j.Wanted, j.Out, len(j.Workers)})
	}
	return p
}

// dimensions holds the words for the things that may be limited, in the order of a view.
var dimensions = [...]string{"requests", "tokens", "input_tokens", "output_tokens"}

func knownOf(v *limiter.View) (known []Known) {
	for i := range v.Limits {
		if l := &v.Limits[i]; l.Known() && l.Refill > 0 && !math.IsInf(l.Refill, 0) {
			known = append(known, Known{dimensions[i], l.Refill, l.Source.String()})
		}
	}
	return known
}
