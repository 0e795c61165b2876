package node

import (
	"context"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/coordinator/machine"
)

type prompt = prompts.Request

// newsWord is something that concerns a job, or a limit: the zero word says that a job has changed.
type newsWord struct {
	Reset string    `json:"reset,omitempty"` // a person vouches for a limit
	Set   *limitSet `json:"set,omitempty"`   // a person says what a limit is like
}

type limitSet struct {
	Name string             `json:"name"`
	Lane machine.LaneConfig `json:"lane"`
}

// tellChanged says that a job has changed. If it is lost, it is seen in the store.
func (n *Node) tellChanged(name string) { _ = n.bus.Say(bus.News, name, newsWord{}) }

// keeperTopic is about how all limits stand, once a second, for whoever looks.
const keeperTopic = bus.Keeper

// sayKeeper says how all limits stand.
func (n *Node) sayKeeper(s keeper.Status) { _ = n.bus.Say(keeperTopic, n.Name(), pictureOf(&s)) }

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
	case w.limits <- limitSet{limit, c}:
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

// again tells which items of a chunk a round tries again.
func (n *Node) again(ctx context.Context, c *job.Chunk) (map[string]bool, error) {
	return parts.Again(ctx, n.home, c)
}

func (w *worker) failedBefore(ctx context.Context, c job.Chunk) (func(string) bool, error) {
	failed, err := w.again(ctx, &c)
	return func(key string) bool { return failed[key] }, err
}
