package claim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/internal/virtual"
)

// fault is the panic value of a world in which a promise is broken.
type fault string

// world is workers, a queue, a store, a keeper and a provider in virtual time.
type world struct {
	plan
	fate
	virtual.Time
	rng    *rand.Rand
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
		log("%10.3f  %s", w.Age().Seconds(), fmt.Sprintf(format, args...))
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

func (w *world) fail(format string, args ...any) { panic(fault(fmt.Sprintf(format, args...))) }

// run lets the world happen until every chunk of every round has its part and the queue is empty.
func (w *world) run() {
	for slot := range w.workers {
		w.slots = append(w.slots, nil)
		w.born(slot)
	}
	w.keep()
	w.storms()
	for w.Pass(time.Time{}) {
		w.Do()
		if w.over() {
			w.checkEnd()
			return
		}
		if w.Age() > w.lasts+patience {
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
	defer w.In(5*time.Second, w.keep)
	if w.mutant == keeperForgets && w.Age() > 0 && w.round == 0 {
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

// life is one life of a worker: the machine, its clock, and what it can reach.
type life struct {
	w          *world
	name       string
	slot       int
	m          *Machine
	rate       float64 // of its clock, against the world's
	dead       bool
	died       time.Duration
	wake       int // the number of the latest alarm
	frozen     time.Duration
	online     bool
	since      time.Duration // not online since then
	lossy      bool          // cut off for so long that what is said to it is lost
	apart      time.Duration // cut off until then,
	apartSince time.Duration // and since then
	deaf       []span        // frozen, or cut off

	stops bool // it drains
	ended bool // it has drained

	number     ID // of its latest delivery
	deliveries map[ID]Chunk
	first      map[ID]bool // whether the queue said that it gave the chunk out for the first time
	wiped      map[ID]int  // how often the queue had forgotten all before that
	desks      map[ID]*claimState
	stream     []*work // read, and not begun
	busy       int     // places of the stream that are taken by calls
}

type span struct{ from, to time.Duration }

const forever = time.Duration(math.MaxInt64 / 2)

// work is an item on its way through a worker's stream.
type work struct {
	state *claimState
	item  int
}

const (
	requestTime = 2 * time.Second        // a request to the bus ends by then
	pullTime    = 5 * time.Second        // a pull of the queue ends by then
	permitLife  = 2 * time.Second        // so long after it was cut off a worker calls
	shortCut    = 4 * time.Second        // a connection outlives that
	longFreeze  = 8 * time.Second        // it may not outlive that
	thaw        = 5 * time.Millisecond   // what came while a worker was frozen is heard within that
	way         = 40 * time.Millisecond  // over the bus, at most
	leastWay    = 5 * time.Millisecond   // and at least
	leaving     = 10 * time.Millisecond  // from when a call may leave to when it does, at most
	finds       = 300 * time.Millisecond // until a new worker is on the bus
)

func (w *world) way() time.Duration { return leastWay + w.upTo(way-leastWay) }

// born begins a life.
func (w *world) born(slot int) {
	l := &life{
		w: w, slot: slot, name: fmt.Sprintf("w%d-%d", slot, len(w.lives)), rate: 1, since: w.Age(),
		deliveries: make(map[ID]Chunk), first: make(map[ID]bool), wiped: make(map[ID]int), desks: make(map[ID]*claimState),
	}
	if w.has(drift) {
		l.rate = 0.98 + 0.04*w.rng.Float64()
	}
	var err error
	if l.m, err = New(Config{Who: l.name, Concurrency: w.concurrency}); err != nil {
		panic(err)
	}
	l.m.Step(l.clock(), Offered{[]string{"j"}})
	w.lives[l.name], w.slots[slot] = l, l
	w.log("%s is born", l.name)
	l.readJob()
	if w.up {
		l.reconnect(w.upTo(finds))
	}
}

// clock returns the time on the worker's clock.
func (l *life) clock() time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(float64(l.w.Age()) * l.rate))
}

// at lets the worker do something, if it lives then, when it is not frozen; and then what follows.
func (l *life) at(d time.Duration, do func()) {
	l.w.In(d, func() {
		switch {
		case l.dead:
		case l.frozen > l.w.Age():
			l.at(l.frozen-l.w.Age()+l.w.upTo(thaw), do)
		default:
			do()
			l.ready()
		}
	})
}

// step tells the machine something.
func (l *life) step(e Event) { l.m.Step(l.clock(), e) }

// ready does what the machine says, and sets the alarm.
func (l *life) ready() {
	for again := true; again && !l.dead; {
		r := l.m.Ready(l.clock())
		for _, a := range r.Do {
			l.do(a)
		}
		again = l.feed() || l.begin()
		if !again {
			l.alarm(r.WakeAt)
		}
	}
	if !l.dead && l.stops && l.m.Idle() {
		l.w.log("%s has drained", l.name)
		l.ended = true
		l.die()
		slot := l.slot
		l.w.In(l.w.upTo(5*time.Second), func() {
			if l.w.slots[slot].dead {
				l.w.born(slot)
			}
		})
	}
}

func (l *life) alarm(at time.Time) {
	l.wake++
	if at.IsZero() {
		return
	}
	number := l.wake
	d := time.Duration(float64(at.Sub(l.clock()))/l.rate) + time.Nanosecond
	if d < 0 {
		l.w.fail("%s is to wake %v ago", l.name, -d)
	}
	l.w.In(d, func() {
		if number == l.wake {
			l.at(0, func() {})
		}
	})
}

func (l *life) die() {
	l.dead, l.died, l.online = true, l.w.Age(), false
}

func (l *life) freeze(d time.Duration) {
	if l.dead || l.frozen > l.w.Age() {
		return
	}
	l.w.tally.freezes++
	l.w.log("%s is frozen for %v", l.name, d)
	l.frozen = l.w.Age() + d
	l.deaf = append(l.deaf, span{l.w.Age(), l.frozen})
	if d > longFreeze && l.online && l.w.chance(2) {
		l.hangUp(len(l.deaf)-1, d)
	}
}

// hangUp lets the hub close the connection of a worker that is frozen: what was said to it is lost.
func (l *life) hangUp(at int, d time.Duration) {
	l.w.In(longFreeze, l.offline)
	l.w.In(d, func() {
		if !l.online {
			l.deaf[at].to = forever
			l.reconnect(l.w.upTo(reconnectSpread))
		}
	})
}

// cut takes the bus from a worker for a time; store and provider stay.
func (l *life) cut(d time.Duration) {
	if l.dead || !l.online || l.apart > l.w.Age() {
		return
	}
	l.w.tally.cuts++
	l.w.log("%s is cut off for %v", l.name, d)
	l.apart, l.apartSince, l.lossy = l.w.Age()+d, l.w.Age(), d > shortCut
	l.deaf = append(l.deaf, span{l.w.Age(), l.apart})
	at := len(l.deaf) - 1
	l.w.In(d, func() {
		if !l.online {
			l.deaf[at].to = forever
			l.reconnect(l.w.upTo(reconnectSpread))
		}
	})
	if l.lossy {
		l.w.In(shortCut, func() { l.offline() })
	}
}

func (l *life) offline() {
	if l.online {
		l.online, l.since = false, l.w.Age()
		if l.apart > l.w.Age() {
			l.since = l.apartSince
		}
	}
}

// reconnect finds the bus, if it is there by then and the worker not cut off.
func (l *life) reconnect(d time.Duration) {
	l.w.In(d, func() {
		switch {
		case l.dead || l.online || !l.w.up || l.apart > l.w.Age():
			return
		case l.frozen > l.w.Age():
			for i := range l.deaf {
				if l.deaf[i].to == l.frozen {
					l.deaf[i].to = forever // until it is on the bus
				}
			}
			l.reconnect(l.frozen - l.w.Age() + l.w.upTo(reconnectSpread))
			return
		}
		l.hearsAgain()
		l.w.log("%s is on the bus", l.name)
		l.at(0, func() {
			at := l.clock()
			if l.w.mutant == hasNoGrace {
				at = at.Add(-DefaultGrace)
			}
			l.step(Connected{at})
		})
	})
}

// hearsAgain ends a time of being cut off: it lasts until the worker is on the bus again.
func (l *life) hearsAgain() {
	for i := range l.deaf {
		if to := l.deaf[i].to; to == forever || to == l.apart {
			l.deaf[i].to = l.w.Age()
		}
	}
	l.online, l.lossy, l.apart = true, false, 0
}

func (l *life) drain() {
	if l.dead || l.stops {
		return
	}
	l.w.tally.drains++
	l.w.log("%s drains", l.name)
	l.stops = true
	l.at(0, func() { l.step(Drained{}) })
}

// hear brings something over the bus to the worker, late if it is cut off for a short time.
func (l *life) hear(d time.Duration, do func()) {
	l.w.In(d, func() {
		switch {
		case !l.online:
		case l.apart > l.w.Age() && l.lossy:
		case l.apart > l.w.Age():
			l.hear(l.apart-l.w.Age()+l.w.way(), do)
		default:
			l.at(0, do)
		}
	})
}

// say brings something from the worker to the hub. It is lost if the hub goes meanwhile.
func (l *life) say(do func()) {
	if !l.online || l.apart > l.w.Age() && l.lossy {
		return
	}
	d := l.w.way() + max(0, l.apart-l.w.Age())
	l.w.In(d, func() {
		if l.w.up {
			do()
		}
	})
}

var errBus = errors.New("the bus does not answer")

// request asks the hub something, and hears that it was done, or nothing by the end of requestTime.
func (l *life) request(effect func(), answer func(error)) {
	answered := false
	once := func(err error) {
		if !answered {
			answered = true
			answer(err)
		}
	}
	if !l.online {
		l.at(0, func() { once(errBus) })
		return
	}
	l.at(requestTime, func() { once(errBus) })
	l.say(func() {
		effect()
		l.hear(l.w.way(), func() { once(nil) })
	})
}

// ask asks another worker, and hears what it says, or that nobody of that name is there, or nothing.
func (l *life) ask(d *claimState, who string, answer func(holds, silent bool)) {
	w, c := l.w, d.chunk
	w.asks[c] = append(w.asks[c], &question{d, who, w.Age(), forever, false})
	other := w.lives[who]
	w.badLuck(other, 5)
	l.say(func() {
		if !other.online {
			l.hear(w.way(), func() { answer(false, true) })
			return
		}
		other.hear(w.way(), func() {
			holds := other.m.Holds(c)
			w.log("%s asks %s for %v: %v", l.name, who, c, holds)
			other.say(func() { l.hear(w.way(), func() { answer(holds, false) }) })
		})
	})
}

// mayCall reports whether the worker has permits: it is on the bus, or was just now.
func (l *life) mayCall() bool {
	since := l.w.Age()
	if !l.online {
		since = l.since
	}
	if l.apart > l.w.Age() {
		since = min(since, l.apartSince)
	}
	return l.w.Age()-since < permitLife
}
