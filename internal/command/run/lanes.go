package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/batch"
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
	Tier   int    // from 0; none is empty
	Config machine.LaneConfig
}

// A Pool holds the lanes that may take a line.
type Pool struct {
	Name  string        // that of a sticky pool is of one home
	Lanes []Lane        // in the order of their tiers
	After time.Duration // how long a tier must have been ill before the next is used
	Spill time.Duration // how long a line may wait for a better tier that is well; 0: for as long as it takes
}

// Lanes returns the lanes of the job; nil: its calls go to one provider.
func (c *Calls) Lanes() *Lanes {
	if c.r.routes == nil {
		return nil
	}
	return &Lanes{calls: c, table: c.r.routes}
}

// Of returns the pool of a line, or the reason why there is none.
func (l *Lanes) Of(q *prompts.Request) (*Pool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, err := l.table.Find(q)
	if err != nil {
		return nil, err
	}
	pool := &Pool{Name: found.Name, After: found.Pool.After, Spill: found.Pool.Spill}
	tier := -1 // of the file's tiers, the latest that has a lane for the line
	for i := range found.Lanes {
		route := &found.Lanes[i]
		if slices.ContainsFunc(pool.Lanes, func(known Lane) bool { return known.Name == route.Machine }) { // of one quota
			continue
		}
		lane := Lane{Name: route.Machine, Limit: l.calls.Account.LimitOn(route.Spec, route.Word), Weight: found.Weight(route.Machine)}
		if n := len(pool.Lanes); n > 0 {
			if lane.Tier = pool.Lanes[n-1].Tier; route.Tier != tier {
				lane.Tier++
			}
		}
		tier = route.Tier
		if lane.Config, err = route.Spec.Config(); err != nil {
			return nil, err
		}
		lane.Config.Account = l.calls.Account.AccountOf(route.Spec)
		if lane.Config.Window = 0; route.Spec.Flags.All.Changed("concurrency") {
			lane.Config.Window = route.Spec.Window()
		}
		pool.Lanes = append(pool.Lanes, lane)
	}
	if found.Pool.Patience > 0 {
		pool.makeSticky(found.HomeKey(q), found.Pool.Patience)
	}
	return pool, nil
}

// homeMark divides the name of a pool from that of the home. No name that people write has it.
const homeMark = "\x00"

// makeSticky turns the pool into one for lines of the key's home: that lane comes first. A run on one machine
// chooses the same home.
func (p *Pool) makeSticky(key string, patience time.Duration) {
	if key == "" || len(p.Lanes) < 2 {
		return
	}
	var names []string
	var weights []int
	for i := range p.Lanes {
		lane := &p.Lanes[i]
		names, lane.Tier = append(names, lane.Name), 1
		if lane.Weight > 0 {
			weights = append(weights, lane.Weight)
		}
	}
	home := batch.HomeOf(key, names, weights)
	first := p.Lanes[home]
	first.Tier = 0
	p.Lanes = slices.Insert(slices.Delete(p.Lanes, home, home+1), 0, first)
	p.Name, p.After, p.Spill = p.Name+homeMark+first.Name, patience, patience
}

// Takes says why no lane takes a line; nil: one does.
func (l *Lanes) Takes(q *prompts.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.table.Find(q)
	return err
}

// Job returns the configuration that [Calls.Job] returns, for these lanes. Its Pool is left to the caller.
func (l *Lanes) Job(in promptfile.Input) promptfile.Config {
	job := l.calls.Job(in)
	origin := job.Origin
	job.Origin = func(pool, lane string) promptfile.Origin {
		l.mu.Lock()
		defer l.mu.Unlock()
		pool, _, _ = strings.Cut(pool, homeMark)
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
