package machine

import (
	"slices"
	"strings"
	"time"
)

// run is one client of the machine: a stretch of input with its own pools and its own ceiling
// on calls in flight.
//
// Invariant: held + inFlight + done = offered, where held counts the items that
// wait in any of its pools or among its releases.
type run struct {
	m      *Machine
	turn   link[run] // among those that may be given something
	id     RunID
	cfg    RunConfig
	counts tally

	pools    map[string]*pool
	opened   []*pool // the same pools, in a deterministic order
	recent   *pool   // of the latest item: most runs have one pool, and no look-up
	busy     int     // grants that were not ended yet, releases included
	held     int
	parked   int      // of these
	delayed  int      // of these
	given    int      // items of its present turn; less than its priority
	runnable poolRing // pools that may have something to give
	releases fifo     // items that end without a further call
	stopped  error    // why no lane could take the first of them; nil: none ended so
	books    books
	flights  flights
	asked    uint64 // the latest asking of a lane that has counted its places

	touched, inputEnded, draining, paused, stranded bool
	resumed                                         time.Time // when it was last paused no more
}

// free reports whether one more grant fits under the run's ceiling. The driver
// relies on it: a channel of that capacity never blocks its sender.
func (r *run) free() bool { return r.busy < r.cfg.Concurrency }

// full reports whether all runs together have as many calls in flight as they may.
func (m *Machine) full() bool { return over(m.flying, m.cfg.Concurrency) }

// ceiling returns the bound on a run's calls in flight.
func (m *Machine) ceiling(r *run) int {
	if most := m.cfg.Concurrency; most > 0 {
		return min(most, r.cfg.Concurrency)
	}
	return r.cfg.Concurrency
}

// finished reports whether the run will never be granted anything again.
func (r *run) finished() bool { return r.inputEnded && r.held == 0 && r.busy == 0 }

// deadRun reports whether all pools of the run have lost their lanes, those included that were
// configured and have met no item yet.
func (m *Machine) deadRun(r *run) bool {
	for _, p := range r.opened {
		if !p.dead() {
			return false
		}
	}
	for _, p := range r.cfg.Pools {
		for _, name := range p.Lanes {
			if l := m.lanes[name]; l == nil || l.phase != Stopped {
				return false
			}
		}
	}
	return true
}

// drawsOn reports whether some pool of the run uses the lane.
func (r *run) drawsOn(l *lane) bool { return r.poolOn(l) != nil }

// poolOn returns a pool of the run that draws on the lane; nil: none does. It looks at the
// pools of the run or of the lane, whichever are fewer.
func (r *run) poolOn(l *lane) *pool {
	all, draws := l.pools, func(p *pool) bool { return p.run == r }
	if len(r.opened) < len(all) {
		all, draws = r.opened, func(p *pool) bool { return slices.Contains(p.lanes, l) }
	}
	if i := slices.IndexFunc(all, draws); i >= 0 {
		return all[i]
	}
	return nil
}

// poolNamed finds the item's pool, or makes it and the lanes that it draws on.
func (m *Machine) poolNamed(now time.Time, r *run, name string) *pool {
	if p := r.recent; p != nil && p.name == name {
		return p
	}
	p := r.pools[name]
	if p == nil {
		p = m.openPool(now, r, name)
	}
	if p.shut == nil {
		r.recent = p
	}
	return p
}

func (m *Machine) openPool(now time.Time, r *run, name string) *pool {
	name = strings.Clone(name) // it may be a piece of an item, which would be kept as long as the pool
	c := PoolConfig{Name: name, Lanes: []string{name}}
	if name == "" {
		c.Lanes = []string{DefaultPool}
	}
	for _, known := range r.cfg.Pools {
		if known.Name == name {
			c = known
		}
	}
	for _, lane := range c.Lanes {
		m.newcomer(now, lane)
	}
	p := newPool(r, c)
	if p.shut = m.roomFor(c.Lanes); p.shut != nil {
		m.giveUp(r, p.shut)
		return p // which turns its item away, and is no pool of the run's: the next item finds out anew
	}
	for _, laneName := range c.Lanes {
		p.lanes = append(p.lanes, m.laneNamed(now, laneName))
	}
	for i := range p.lanes {
		p.draw(i)
	}
	p.ruled = p.lanes[0].ruled
	r.pools[name] = p
	r.opened = append(r.opened, p)
	m.stirAll(p)
	if p.dead() {
		m.strandRun(r, p.cause())
	}
	return p
}

// poolRing is a line of pools without links of its own: a pool can be in the
// runnable line only once, which its queued flag guards.
type poolRing struct {
	first, last *pool
	n           int
}

func (q *poolRing) push(p *pool) {
	if p.queued {
		return
	}
	p.queued, p.next = true, nil
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.n++
}

func (q *poolRing) pop() *pool {
	p := q.first
	if p == nil {
		return nil
	}
	q.first = p.next
	if q.first == nil {
		q.last = nil
	}
	p.queued, p.next = false, nil
	q.n--
	return p
}
