package run

import (
	"context"
	"slices"
	"sync"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/provider"
)

// Lanes are those of a job whose calls go to several providers, keys or addresses. Any number of goroutines may use them.
type Lanes struct {
	calls *Calls
	mu    sync.Mutex // guards the table, which learns of models as lines come
	table *route.Table
}

// A Lane is one of those that may take a line.
type Lane struct {
	Name   string // in result lines
	Limit  string // among those of many machines; no two lanes of a job have the same
	Weight int    // 0: all weigh the same
	Config machine.LaneConfig
}

// Lanes returns the lanes of the job; nil: its calls go to one provider.
func (c *Calls) Lanes() *Lanes {
	if c.r.routes == nil {
		return nil
	}
	return &Lanes{calls: c, table: c.r.routes}
}

// Of returns the name of a line's pool and its lanes, or why there is none.
func (l *Lanes) Of(q *prompts.Request) (pool string, lanes []Lane, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := l.table.Find(q)
	if err != nil {
		return "", nil, err
	}
	for i := range r.Lanes {
		on := &r.Lanes[i]
		if slices.ContainsFunc(lanes, func(known Lane) bool { return known.Name == on.Machine }) { // of one quota
			continue
		}
		one := Lane{Name: on.Machine, Limit: l.calls.Account.LimitOn(on.Spec, on.Word), Weight: r.Weight(on.Machine)}
		if one.Config, err = on.Spec.Config(); err != nil {
			return "", nil, err
		}
		one.Config.Account = l.calls.Account.AccountOf(on.Spec)
		if one.Config.Window = 0; on.Spec.Flags.All.Changed("concurrency") {
			one.Config.Window = on.Spec.Window()
		}
		lanes = append(lanes, one)
	}
	return r.Name, lanes, nil
}

// Takes says why no lane takes a line; nil: one does.
func (l *Lanes) Takes(q *prompts.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.table.Find(q)
	return err
}

// Job is [Calls.Job] over these lanes. Its Pool is left to the caller.
func (l *Lanes) Job(in promptfile.Input) promptfile.Config {
	job := l.calls.Job(in)
	origin := job.Origin
	job.Origin = func(pool, lane string) promptfile.Origin {
		l.mu.Lock()
		defer l.mu.Unlock()
		return origin(pool, lane)
	}
	job.Reader.Takes, job.Pool = l.Takes, nil
	return job
}

// Call makes the call of an item on a lane, by the lane's name.
func (l *Lanes) Call(ctx context.Context, it *promptfile.Item, lane string) (provider.Reply, error) {
	return l.calls.r.calls.callOn(ctx, it, lane)
}

// Bound gives a lane the bounds on items and calls that the flags of Tries set. The time of a call is the lane's own.
func (l *Lanes) Bound(lane *machine.LaneConfig) {
	timeout := lane.AttemptTimeout
	l.calls.Bound(lane)
	lane.AttemptTimeout = timeout
}
