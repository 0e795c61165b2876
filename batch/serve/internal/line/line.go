package line

import (
	"cmp"
	"container/heap"
	"errors"
	"slices"
	"time"
)

// ErrFull says that too many requests wait already, in all or of this client.
var ErrFull = errors.New("line: too many requests wait")

// A Class is the rank of a request. Classes share what leaves 16 : 4 : 1.
type Class uint8

// The classes.
const (
	Interactive Class = iota
	Normal
	Batch
)

// classes holds the name and the share of each. A class has four times as much as the next one: batch keeps
// 4.8 % where the others want all.
var classes = [...]struct {
	name  string
	share float64
}{{"interactive", 16}, {"normal", 4}, {"batch", 1}}

func (c Class) String() string { return classes[c].name }

// ClassOf returns the class of a name.
func ClassOf(name string) (Class, bool) {
	for i, c := range classes {
		if c.name == name {
			return Class(i), true
		}
	}
	return Normal, false
}

// Config bounds a Line. Zero is no bound.
type Config struct {
	MaxWaiting int // requests in all
	PerClient  int // requests of one client
}

// A Place says where a request stands. The zero Place is an interactive request of a client without a name,
// which waits for ever.
type Place struct {
	Class       Class
	Client      string    // whose turn it is
	Key         string    // whose bounds hold, where Client is one of the names that it gives; "": those of Client
	Weight      int       // of the client's turns within its class; below 1 counts as 1
	Tag         string    // the client's tags take turns
	Cost        float64   // what it draws of the limit that binds; 0 or less counts as 1
	Latest      time.Time // when it goes at the latest; zero: never too late
	MaxWaiting  int       // requests of the key that may wait, in all pools; 0: of the client, as the Line says
	MaxInFlight int       // requests of the key that may have gone and not left, in all pools; 0: any number
	Payload     any       // the caller's own
}

// key names those whose bounds hold.
func (p *Place) key() string { return cmp.Or(p.Key, p.Client) }

// name names the client among those of all keys. Two keys that give one name do not share its turns. No name has a zero byte.
func (p *Place) name() string {
	if key := p.key(); key != p.Client {
		return key + "\x00" + p.Client
	}
	return p.Client
}

// A Request is one that has entered. It belongs to its line.
type Request struct {
	Place
	cost          float64
	seq           uint64
	leaf          *flow
	client        *client
	heapIndex     int // in its leaf's requests; -1: it does not wait
	patienceIndex int // in the line's patience; -1: it is not there
	hasLeft       bool
}

// goesBefore reports whether r goes before o, a request of the same tag: the least patient goes first, then the
// first to come.
func (r *Request) goesBefore(o *Request) bool {
	switch {
	case r.Latest.Equal(o.Latest):
	case r.Latest.IsZero() || o.Latest.IsZero():
		return o.Latest.IsZero()
	default:
		return r.Latest.Before(o.Latest)
	}
	return r.seq < o.seq
}

// Waits reports whether the request waits for its turn.
func (r *Request) Waits() bool { return r.heapIndex >= 0 }

// client counts the requests of a key over all pools and classes.
type client struct {
	waiting, inFlight, maxInFlight int
	wasFull                        bool    // so its flows know it
	flows                          []*flow // those in which it has requests that wait
}

// isFull reports whether as many of the client's requests have gone as may be.
func (c *client) isFull() bool { return c != nil && c.maxInFlight > 0 && c.inFlight >= c.maxInFlight }

func (c *client) isIdle() bool { return c.waiting+c.inFlight == 0 }

// link applies the client's bound on calls in flight to a flow.
func (c *client) link(f *flow) {
	if f.client == nil {
		f.client, f.link = c, len(c.flows)
		c.flows = append(c.flows, f)
	}
}

// unlink removes a flow in which none of the client's requests waits.
func (c *client) unlink(f *flow) {
	last := len(c.flows) - 1
	moved := c.flows[last]
	c.flows[f.link], moved.link = moved, f.link
	c.flows[last] = nil
	c.flows, f.client = c.flows[:last], nil
}

// A Line holds the requests that wait, by pool. It is a value in the care of one owner. Make it with [New].
type Line struct {
	cfg      Config
	pools    map[string]*flow
	clients  map[string]*client // by key
	names    map[string]int     // of the requests that wait, by the name of their client
	patience patience
	waiting  int
	seq      uint64
}

// New returns a line in which nobody waits.
func New(cfg Config) *Line {
	return &Line{cfg: cfg, pools: map[string]*flow{}, clients: map[string]*client{}, names: map[string]int{}}
}

// Waiting returns the number of requests that wait, in all.
func (l *Line) Waiting() int { return l.waiting }

// Enter lets a request wait for its turn. The error is [ErrFull].
func (l *Line) Enter(pool string, p Place) (*Request, error) {
	key, name := p.key(), p.name()
	c := l.clients[key]
	if c == nil {
		c = &client{}
	}
	waiting, maxWaiting := c.waiting, p.MaxWaiting
	if maxWaiting == 0 {
		waiting, maxWaiting = l.names[name], l.cfg.PerClient
	}
	if l.cfg.MaxWaiting > 0 && l.waiting >= l.cfg.MaxWaiting || maxWaiting > 0 && waiting >= maxWaiting {
		return nil, ErrFull
	}
	l.clients[key] = c
	l.names[name]++
	l.seq++
	c.waiting, c.maxInFlight = c.waiting+1, p.MaxInFlight
	l.waiting++
	r := &Request{Place: p, cost: p.Cost, seq: l.seq, client: c, patienceIndex: -1, leaf: l.leaf(pool, c, &p)}
	if !(r.cost > 0) {
		r.cost = 1
	}
	heap.Push(&r.leaf.requests, r)
	r.leaf.addWaiting(1, r.cost)
	r.leaf.updateActive(l.seq)
	l.updateBound(c) // its bound may be another one since the last request
	if !r.Latest.IsZero() {
		heap.Push(&l.patience, r)
	}
	return r, nil
}

// leaf returns the flow of a request's tag, and makes the flows on the way to it.
func (l *Line) leaf(pool string, c *client, p *Place) *flow {
	root := l.pools[pool]
	if root == nil {
		root = newFlow(nil, pool, 1)
		l.pools[pool] = root
	}
	class := root.child(classes[p.Class].name, classes[p.Class].share)
	f := class.child(p.name(), float64(max(1, p.Weight)))
	c.link(f)
	return f.child(p.Tag, 1)
}

// Next lets the request go whose turn it is in the pool; nil: none can. It counts as one of its client's
// calls until it leaves.
func (l *Line) Next(pool string) *Request {
	root := l.pools[pool]
	if root == nil || len(root.active) == 0 {
		return nil
	}
	r := root.next()
	r.client.inFlight++
	l.stopsWaiting(r)
	l.updateBound(r.client)
	return r
}

// updateBound tells all flows of a client when its bound on calls in flight is reached, or is so no longer.
func (l *Line) updateBound(c *client) {
	if c.wasFull == c.isFull() {
		return
	}
	c.wasFull = !c.wasFull
	l.seq++
	for _, f := range c.flows {
		f.updateActive(l.seq)
	}
}

// stopsWaiting removes a request from its leaf and from the counts of those that wait.
func (l *Line) stopsWaiting(r *Request) {
	heap.Remove(&r.leaf.requests, r.heapIndex)
	if r.patienceIndex >= 0 {
		heap.Remove(&l.patience, r.patienceIndex)
	}
	r.leaf.addWaiting(-1, -r.cost)
	l.waiting--
	r.client.waiting--
	name := r.name()
	if l.names[name]--; l.names[name] == 0 {
		delete(l.names, name)
	}
	r.leaf.updateActive(l.seq)
	if f := r.leaf.parent; f.waiting == 0 {
		r.client.unlink(f)
	}
	if root := r.leaf.root(); root.waiting == 0 {
		delete(l.pools, root.name) // all that come begin anew
	}
}

// Leave takes a request out: it waits no more, or its call has ended. Of a request that has left it does
// nothing. It reports whether another request may be able to go now.
func (l *Line) Leave(r *Request) (frees bool) {
	if r.hasLeft {
		return false
	}
	r.hasLeft = true
	if r.Waits() {
		l.stopsWaiting(r)
	} else {
		frees = r.client.isFull()
		r.client.inFlight--
		l.updateBound(r.client)
	}
	if r.client.isIdle() {
		delete(l.clients, r.key())
	}
	return frees
}

// Expire takes out the requests that must have gone by now, and returns them.
func (l *Line) Expire(now time.Time) (late []*Request) {
	for len(l.patience) > 0 && !now.Before(l.patience[0].Latest) {
		r := l.patience[0]
		l.Leave(r)
		late = append(late, r)
	}
	return late
}

// Ahead estimates how many requests go before r, and what they cost together, if nobody comes. It costs
// a look at each request of r's tag, and at each flow next to its own.
func (l *Line) Ahead(r *Request) (n int, cost float64) {
	if !r.Waits() {
		return 0, 0
	}
	for _, o := range r.leaf.requests {
		if o.goesBefore(r) {
			n, cost = n+1, cost+o.cost
		}
	}
	return addAncestors(r.leaf, n, cost)
}

// addAncestors adds to n and cost what goes before a request of f at each level above it.
func addAncestors(f *flow, n int, cost float64) (int, float64) {
	for ; f.parent != nil; f = f.parent {
		n, cost = f.estimateBefore(n, cost)
	}
	return n, cost
}

// Each calls visit for the requests that wait in the pool and may go, with what [Line.Ahead] says of them. It is
// cheaper than Ahead for each.
func (l *Line) Each(pool string, visit func(r *Request, n int, cost float64)) {
	root := l.pools[pool]
	if root == nil {
		return
	}
	root.leaves(func(f *flow) {
		var cost float64
		for n, r := range f.sorted() {
			before, sum := addAncestors(f, n, cost)
			visit(r, before, sum)
			cost += r.cost
		}
	})
}

// Clear takes out all requests that wait in a pool, and returns them in the order in which they came.
func (l *Line) Clear(pool string) (all []*Request) {
	if root := l.pools[pool]; root != nil {
		all = root.appendAll(nil)
	}
	slices.SortFunc(all, func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) })
	for _, r := range all {
		l.Leave(r)
	}
	return all
}

// Due returns when the next request will have waited for too long; zero: none will.
func (l *Line) Due() (at time.Time) {
	if len(l.patience) > 0 {
		at = l.patience[0].Latest
	}
	return at
}

// WaitingIn returns the number of requests that wait in a pool.
func (l *Line) WaitingIn(pool string) (n int) {
	if root := l.pools[pool]; root != nil {
		n = root.waiting
	}
	return n
}
