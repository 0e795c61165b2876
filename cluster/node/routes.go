package node

import (
	"context"
	"sync"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A Route holds the lanes that take the lines of one model, for a job that has several. In a sticky pool it holds them
// for the lines of one home.
type Route struct {
	Name  string        // no other route of the job has it
	Lanes []RouteLane   // one at least, in the order of their tiers
	After time.Duration // how long a tier must have been ill before the next is used
	Spill time.Duration // how long a line may wait for a better tier that is well; 0: for as long as it takes
}

// A RouteLane is a lane of a Route. It is under a limit of its own, which it shares with the lanes of other jobs and
// workers.
type RouteLane struct {
	Limit       string             // its name; no two lanes of a job have the same
	Name        string             // as a run of one process calls the lane, in result lines
	Weight      int                // its share of the turns; 0: all have the same
	Tier        int                // from 0; each has a lane
	Known, Lane machine.LaneConfig // as Limit and Lane of a Caller
}

// routes knows the lanes of a job that has several. Any goroutine may call its methods.
type routes struct {
	job    string
	choose func(*prompts.Request) (*Route, error)
	mu     sync.Mutex
	pools  map[string]*Route
	names  map[string]string // of lanes in result lines, by the worker's lane
}

// routesOf returns the routes of a job; nil if each model has one lane.
func routesOf(name string, c *Caller) *routes {
	if c.Route == nil {
		return nil
	}
	return &routes{job: name, choose: c.Route, pools: map[string]*Route{}, names: map[string]string{}}
}

// pool returns the name of the pool for a line, in the worker's stream.
func (r *routes) pool(request *prompts.Request) string {
	route, err := r.choose(request)
	if err != nil { // its reader let the line pass, so its file has changed since
		return laneName(request.Model, r.job)
	}
	pool := laneName(route.Name, r.job)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pools[pool] == nil {
		r.pools[pool] = route
		for i := range route.Lanes {
			r.names[laneName(route.Lanes[i].Limit, r.job)] = route.Lanes[i].Name
		}
	}
	return pool
}

// route returns the route of a pool; nil: it has none, and is a single lane of the same name.
func (r *routes) route(pool string) *Route {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pools[pool]
}

// resultLane returns the name of a worker's lane in result lines.
func (r *routes) resultLane(lane string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[lane]
}

// configFor adapts the configuration of a run of one process, so that items and lines name these lanes.
func (r *routes) configFor(c promptfile.Config) promptfile.Config {
	bill, origin := c.Bill, c.Origin
	c.Pool = r.pool
	if bill != nil {
		c.Bill = func(lane, model string, u provider.Usage) promptfile.Bill { return bill(r.resultLane(lane), model, u) }
	}
	if origin != nil {
		c.Origin = func(pool, lane string) promptfile.Origin {
			route, _ := splitLane(pool)
			return origin(route, r.resultLane(lane))
		}
	}
	return c
}

// priceOf returns the function that prices a job's calls. Without routes all lanes have the same prices.
func priceOf(c *promptfile.Config, r *routes) priceFunc {
	if r == nil {
		price := c.Price
		return func(_, model string, u provider.Usage) (float64, bool) {
			if price == nil {
				return 0, false
			}
			return price(model, u)
		}
	}
	bill := c.Bill
	return func(lane, model string, u provider.Usage) (float64, bool) {
		b := bill(lane, model, u)
		return b.USD, b.Known
	}
}

// definePool makes the pool of an item, and those of its lanes that are not there. Without routes the pool is one lane
// of its own name.
func (w *worker) definePool(ctx context.Context, pool string) {
	limit, name := splitLane(pool)
	o, err := w.jobs.open(ctx, name)
	if err != nil {
		return // ctx has ended, or the job has
	}
	w.lanes.addPool(pool)
	route := o.routes.route(pool)
	if route == nil {
		w.defineLane(ctx, pool, o.caller.Lane, o.caller.Limit)
		return
	}
	p := batch.PoolConfig{Name: pool, After: route.After, Spill: route.Spill}
	var limits []string
	for i := range route.Lanes {
		l := &route.Lanes[i]
		limits = append(limits, l.Limit)
		p.Lanes, p.Tiers = append(p.Lanes, laneName(l.Limit, name)), append(p.Tiers, l.Tier)
		if l.Weight > 0 {
			p.Weights = append(p.Weights, l.Weight)
		}
		w.defineLane(ctx, laneName(l.Limit, name), l.Lane, l.Known)
	}
	w.refusals.notePool(pool, limits)
	if err := w.control.DefinePool(ctx, p); err != nil {
		w.sayf("pool %s of job %s cannot be used: %v", limit, name, err)
	}
}
