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

// tellChanged says that a job has changed. If it is lost, it is seen in the store.
func (n *Node) tellChanged(name string) { _ = n.bus.Say(bus.News, name, keeping.News{}) }

// sayKeeper says how all limits stand, for whoever looks.
func (n *Node) sayKeeper(s keeper.Status) { _ = n.bus.Say(bus.Keeper, n.Name(), pictureOf(&s)) }

// WorkerStatus is what a worker says of itself once a second.
type WorkerStatus struct {
	At       time.Time                     `json:"at"` // by its own clock, for people
	InFlight int                           `json:"in_flight"`
	Done     uint64                        `json:"done"` // items that ended here, since it began
	Calls    uint64                        `json:"calls"`
	Refused  uint64                        `json:"refused"`
	Limits   map[string]machine.LaneConfig `json:"limits,omitempty"` // what the limits are like that it works under

	UpS         float64            `json:"up_s"` // since it began, in seconds: no clocks need to be compared
	Concurrency int                `json:"concurrency"`
	Jobs        map[string]JobWork `json:"jobs,omitempty"`    // of which it has made calls, at most jobsSaid
	Refuses     map[string]Refusal `json:"refuses,omitempty"` // jobs that it cannot work on, at most jobsSaid
}

// statusEvery is how often a worker says how it stands.
const statusEvery = time.Second

// jobsSaid is how many jobs a worker says how it stands with: its busiest.
const jobsSaid = 32

// JobWork is what a worker does for one job.
type JobWork struct {
	InFlight  int    `json:"in_flight"`
	Waiting   int    `json:"waiting"` // items that were called and are to be called again
	Done      uint64 `json:"done"`    // items that ended here, since it began
	Calls     uint64 `json:"calls"`   // likewise
	Refused   uint64 `json:"refused"`
	Cooldowns uint64 `json:"cooldowns"`
	MeanMS    int64  `json:"latency_ms"`
	P95MS     int64  `json:"p95_ms"`
}

// jobsOf adds lanes up by their jobs.
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

// sayLimit remembers what a limit is like, to be said.
func (w *worker) sayLimit(limit string, o *opened) {
	c := o.caller.Limit
	c.Maker = nil
	select {
	case w.limits <- keeping.LimitSet{Name: limit, Lane: c}:
	default: // it is said when the next lane is made
	}
}

// sayStatus says once a second how the worker stands.
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

// failedBefore tells which items of a chunk a round tries again.
func (w *worker) failedBefore(ctx context.Context, c job.Chunk) (func(string) bool, error) {
	failed, err := parts.Again(ctx, w.home, &c)
	return func(key string) bool { return failed[key] }, err
}

// A Picture is how all limits of a cluster stand, as its keeper says each second.
type Picture struct {
	Version int            `json:"v"`     // of the words that it hears from workers, and says to them
	Epoch   uint64         `json:"epoch"` // of the keeper
	Limits  []LimitPicture `json:"limits"`
}

// A LimitPicture is how one limit stands.
type LimitPicture struct {
	Name     string       `json:"name"`
	Phase    string       `json:"phase"`
	InFlight int          `json:"in_flight"`
	Why      string       `json:"why,omitempty"`    // what the next call waits for; "": it does not
	Bound    string       `json:"bound"`            // the word of what holds its calls back, as of a run; "": nothing
	WaitS    float64      `json:"wait_s,omitempty"` // how long, as far as time alone decides
	Known    []Known      `json:"known,omitempty"`  // what is believed of it
	Pace     *float64     `json:"per_second"`       // calls that are let through; null: as many as are wanted
	Given    uint64       `json:"given"`            // permits, since the keeper began, as the next three
	Ended    uint64       `json:"ended"`
	Refused  uint64       `json:"refused"`
	Vanished uint64       `json:"vanished"`
	Stopped  string       `json:"stopped,omitempty"` // why; "": it is not
	Jobs     []JobPicture `json:"jobs"`
}

// Known is what is believed of one thing that is limited.
type Known struct {
	Limit     string  `json:"limit"` // requests, tokens, input_tokens or output_tokens
	PerSecond float64 `json:"per_second"`
	Source    string  `json:"source"` // told, learned or seen, which is by headers
}

// A JobPicture is how a job stands under a limit.
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

// dimensions are the words of what may be limited, in the order of a view.
var dimensions = [...]string{"requests", "tokens", "input_tokens", "output_tokens"}

func knownOf(v *limiter.View) (known []Known) {
	for i := range v.Limits {
		if l := &v.Limits[i]; l.Known() && l.Refill > 0 && !math.IsInf(l.Refill, 0) {
			known = append(known, Known{dimensions[i], l.Refill, l.Source.String()})
		}
	}
	return known
}
