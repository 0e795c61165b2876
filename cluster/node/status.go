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
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

type prompt = prompts.Request

// announceChange announces that a job has changed. If the message is lost, the store shows the change.
func (n *Node) announceChange(name string) { _ = n.bus.Say(bus.News, name, bus.Change{}) }

// sayKeeper publishes the state of all limits, and passes it to a watch, if there is one.
func (n *Node) sayKeeper(s keeper.Status, watch func(bus.Picture)) {
	picture := pictureOf(&s)
	_ = n.bus.Say(bus.Keeper, n.Name(), picture)
	if watch != nil {
		watch(picture)
	}
}

// statusEvery is the time between two reports of a worker.
const statusEvery = time.Second

// jobsOf adds up the work of each job over all its lanes.
func jobsOf(lanes []batch.LaneStatus) map[string]bus.JobWork {
	all := map[string]bus.JobWork{}
	for i := range lanes {
		l := &lanes[i]
		_, name := splitLane(l.Name)
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
func (w *worker) sayLimit(limit string, c machine.LaneConfig) {
	c.Maker = nil
	select {
	case w.limits <- bus.LimitSet{Name: limit, Lane: c}:
	default: // the next new lane passes it on
	}
}

// sayStatus reports the worker's state once a second.
func (w *worker) sayStatus(ctx context.Context) {
	ticker := w.clock.NewTicker(statusEvery)
	defer ticker.Stop()
	s, began := bus.WorkerStatus{Limits: map[string]machine.LaneConfig{}}, w.clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-w.limits:
			s.Limits[l.Name] = l.Lane
		case <-ticker.Chan():
			for _, limit := range w.forgetEnded() {
				delete(s.Limits, limit)
			}
		}
		s.UpS, s.Refuses = w.clock.Since(began).Seconds(), w.refusals.report()
		w.takeStatus(ctx, &s)
		_ = w.bus.Say(bus.Status, w.Name(), s)
		if w.how.Watch.Worked != nil {
			w.how.Watch.Worked(s)
		}
	}
}

// takeStatus brings the worker's report up to date. If the stream does not answer within a period,
// the report repeats the earlier numbers.
func (w *worker) takeStatus(ctx context.Context, s *bus.WorkerStatus) {
	ctx, stop := context.WithTimeout(ctx, statusEvery)
	defer stop()
	s.At = w.clock.Now().UTC()
	b, err := w.control.Status(ctx, bus.MostJobs)
	if err != nil {
		return
	}
	c := b.Totals
	s.InFlight, s.Done, s.Calls, s.Refused = int(c.Calls-c.Settled-c.HandedOver), c.Settled+c.FailedLater, c.Calls, c.Throttled
	s.Jobs, s.Concurrency = jobsOf(b.Lanes), w.how.Concurrency
}

// failedBefore returns a function that reports whether the chunk's round tries an item again.
func (w *worker) failedBefore(ctx context.Context, c job.Chunk) (func(string) bool, error) {
	failed, err := parts.Again(ctx, w.home, &c)
	return func(key string) bool { return failed[key] }, err
}

// pictureOf turns a keeper's status into its form on the bus.
func pictureOf(s *keeper.Status) bus.Picture {
	p := bus.Picture{Version: permit.Version, Epoch: s.Epoch, Limits: make([]bus.LimitPicture, 0, len(s.Limits))}
	for i := range s.Limits {
		p.Limits = append(p.Limits, limitOf(&s.Limits[i]))
	}
	return p
}

// limitOf turns the state of a limit into its form on the bus. It leaves out a pace without bound,
// because JSON has no number for that.
func limitOf(l *keeper.LimitStatus) bus.LimitPicture {
	p := bus.LimitPicture{
		Name: l.Name, Phase: l.Lane.Phase.String(), InFlight: l.Lane.InFlight, Jobs: make([]bus.JobPicture, 0, len(l.Jobs)),
		Given: l.Counts.Given, Ended: l.Counts.Ended, Refused: l.Counts.Refused, Vanished: l.Counts.Vanished,
	}
	if pace := l.Lane.Rate; !math.IsInf(pace, 0) && !math.IsNaN(pace) {
		p.Pace = &pace
	}
	p.Why, p.Bound, p.WaitS, p.Known = l.Lane.Why, l.Lane.Bound.String(), l.Lane.Wait.Seconds(), knownOf(&l.Lane.View)
	if p.Account = l.Lane.Account; l.Stopped != nil {
		p.Stopped = l.Stopped.Text
	}
	for _, j := range l.Jobs {
		p.Jobs = append(p.Jobs, bus.JobPicture{Job: j.Name, Weight: j.Weight, Given: j.Given, Wanted: j.Wanted, Out: j.Out, Workers: j.Workers})
	}
	return p
}

// dimensions holds the words for the things that may be limited, in the order of a view.
var dimensions = [...]string{"requests", "tokens", "input_tokens", "output_tokens"}

// knownOf lists the bounds of a limit that are known and finite.
func knownOf(v *limiter.View) (known []bus.Known) {
	for i := range v.Limits {
		if l := &v.Limits[i]; l.Known() && l.Refill > 0 && !math.IsInf(l.Refill, 0) {
			known = append(known, bus.Known{Limit: dimensions[i], PerSecond: l.Refill, Source: l.Source.String()})
		}
	}
	return known
}
