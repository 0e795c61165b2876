package claim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// fault is the panic value of a world in which a promise is broken.
type fault string

// happening is something that will happen in a world.
type happening struct {
	at  time.Duration
	seq int
	do  func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// world is workers, a queue, a store, a keeper and a provider in virtual time.
type world struct {
	plan
	fate
	rng    *rand.Rand
	now    time.Duration
	next   agenda
	seq    int
	log    func(string, ...any)
	tally  tally
	store  store
	queue  queue
	lives  map[string]*life // by name, the dead ones too
	slots  []*life          // the one that lives there now, or did last
	round  int
	cancel bool // the job is canceled
	calls  map[itemKey][]*call
	asks   map[Chunk][]*question // that claims asked about a chunk
	up     bool                  // the hub is
	calm   bool                  // the storm is over
}

type itemKey struct {
	chunk Chunk
	item  int
}

// patience bounds the time of a world after its storm: for all items one after the other, with every
// chunk put back a few times.
const patience = 40 * time.Minute

func newWorld(p plan, log func(string, ...any)) *world {
	if log == nil {
		log = func(string, ...any) {}
	}
	w := &world{plan: p, rng: rand.New(rand.NewPCG(p.seed, 14)), lives: make(map[string]*life)}
	w.fate = p.draw(w.rng)
	w.log = func(format string, args ...any) {
		log("%10.3f  %s", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
	w.calls = make(map[itemKey][]*call)
	w.asks = make(map[Chunk][]*question)
	w.store = store{w: w, parts: make(map[Chunk]*part), journals: make(map[Chunk]map[Name]*journal)}
	w.queue = queue{w: w, messages: make(map[Chunk]*message)}
	w.up = true
	w.tally.worlds = 1
	return w
}

func (w *world) has(t trouble) bool { return w.fate.has&t != 0 }

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// upTo draws a time between 0 and d.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }

func (w *world) in(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.next, happening{w.now + d, w.seq, do})
}

func (w *world) fail(format string, args ...any) { panic(fault(fmt.Sprintf(format, args...))) }

// run lets the world happen until every chunk of every round has its part and the queue is empty.
func (w *world) run() {
	for slot := range w.workers {
		w.slots = append(w.slots, nil)
		w.born(slot)
	}
	w.keep()
	w.storms()
	for len(w.next) > 0 {
		h := heap.Pop(&w.next).(happening)
		w.now = h.at
		h.do()
		if w.over() {
			w.checkEnd()
			return
		}
		if w.now > w.lasts+patience {
			w.fail("it does not end: parts %d, queue %d", len(w.store.parts), len(w.queue.messages))
		}
	}
	w.fail("nothing happens any more")
}

func (w *world) over() bool {
	return w.calm && w.complete() && !w.anotherRound() && len(w.queue.messages) == 0 && !w.busy()
}

// busy reports whether a worker has a chunk at hand.
func (w *world) busy() bool {
	for _, l := range w.slots {
		if !l.dead && len(l.m.claims) > 0 {
			return true
		}
	}
	return false
}

// chunk is the n-th chunk of the round that is on.
func (w *world) chunk(n int) Chunk { return Chunk{"j", n, w.round} }

// complete reports whether each chunk of the round that is on has its part.
func (w *world) complete() bool {
	for n := range w.chunks {
		if c := w.chunk(n); w.store.parts[c] == nil && len(w.items(c)) > 0 {
			return false
		}
	}
	return true
}

// items are the items of a chunk: all of them, or what failed in the round before.
func (w *world) items(c Chunk) (items []int) {
	if c.Round == 0 {
		for i := range 1 + (c.Number*7+w.lines)%w.lines {
			items = append(items, i)
		}
		return items
	}
	before := w.store.parts[Chunk{c.Job, c.Number, c.Round - 1}]
	if before == nil {
		return nil
	}
	for _, l := range before.lines {
		if l.failed {
			items = append(items, l.item)
		}
	}
	return items
}

// anotherRound begins to try again what failed, once.
func (w *world) anotherRound() bool {
	if w.round > 0 || !w.has(retries) {
		return false
	}
	w.round++
	w.log("the job's next round")
	return true
}

// keep is the keeper: it queues what has no part whenever the queue holds fewer chunks than that.
func (w *world) keep() {
	defer w.in(5*time.Second, w.keep)
	if w.mutant == keeperForgets && w.now > 0 && w.round == 0 {
		return
	}
	if !w.up || w.cancel {
		return
	}
	var missing []Chunk
	for n := range w.chunks {
		if c := w.chunk(n); w.store.parts[c] == nil && len(w.items(c)) > 0 {
			missing = append(missing, c)
		}
	}
	if len(w.queue.messages) < len(missing) {
		for _, c := range missing {
			w.queue.publish(c)
		}
	}
}
