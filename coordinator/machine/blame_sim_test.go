package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/seeds"
	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
)

// Worlds that are about blame: one run, one or two servers, some items that always fail,
// outages of each kind, keys that are bad for a while, processes that are killed and begun
// again with what they saved. A world ends when each item was answered or has failed.

const (
	ordealAttempts = 5 // of an item, as of the command
	ordealMost     = 72 * time.Hour
	ordealStarts   = 60 // processes that a patient user begins
	ordealSteps    = 4_000_000
	stopsMost      = 8 // processes that are stopped, until the user has the next keep going
)

// How a server is ill for a while.
const (
	isRefused  = iota // nobody listens: the call never leaves
	isReset           // calls break at once
	isBroken          // 500, as slowly as an answer
	isHung            // no answer until the attempt's timeout
	isBusy            // 503
	isLimiting        // 429 to each call
	isLocked          // 401 to each call
	illnesses
)

// An ailment is one of a server's, from one moment to another.
type ailment struct {
	from, to time.Duration
	kind     int
	cuts     bool // calls that are under way as it begins break
}

// A patient is a server that is ill at times.
type patient struct {
	latency   time.Duration
	illnesses []ailment
}

// at returns the server's ailment at that age of the world; nil: it is well.
func (p *patient) at(age time.Duration) *ailment {
	for i := range p.illnesses {
		if current := &p.illnesses[i]; current.from <= age && age < current.to {
			return current
		}
	}
	return nil
}

// An ordeal is one world.
type ordeal struct {
	virtual.Time
	rng     *rand.Rand
	lanes   []string
	servers map[string]*patient
	config  Config
	run     RunConfig
	poison  []int // how each item always fails; 0: it does not
	strict  bool  // twenty alike stop a lane that was never answered
	ahead   int   // most items that wait, besides those for which there are workers
	killed  bool  // processes end with what they knew a while ago

	m        *Machine
	items    []*Item
	offered  int
	open     int // items of this process that are not over
	over     []bool
	answered bool
	faults   []faultsOf
	saved    memoryOfAll
	savedAt  time.Time
	steps    int
}

// faultsOf counts the calls of a good item that broke or were refused for good.
type faultsOf struct{ broke, locked int }

// memoryOfAll holds everything that a process saves.
type memoryOfAll struct {
	lanes map[string]LaneMemory
	items map[string]ItemMemory
}

// newOrdeal draws a world.
func newOrdeal(seed uint64) *ordeal {
	rng := rand.New(rand.NewPCG(seed, 23))
	span := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)+1))
	}
	w := &ordeal{Time: virtual.Begin(storyStart), rng: rng, servers: map[string]*patient{}, lanes: []string{"l0", "l1"}[:1+rng.IntN(2)]}
	w.config = Config{
		LongWait: -1, Seed: seed, Lane: LaneConfig{Law: []limiter.LawName{limiter.Model, limiter.Plain}[rng.IntN(2)]},
		Lanes: map[string]LaneConfig{},
	}
	if w.config.Lane.Law == limiter.Model {
		w.config.Lane.Rate.Initial = 50
	}
	w.run = RunConfig{Concurrency: 4 << rng.IntN(5), KeepGoing: rng.IntN(8) == 0, Pools: []PoolConfig{{Name: "p", Lanes: w.lanes}}}
	w.strict, w.killed = rng.IntN(2) == 0, rng.IntN(2) == 0
	for _, name := range w.lanes {
		p := &patient{latency: span(50*time.Millisecond, 4*time.Second)}
		at := time.Duration(0)
		for range rng.IntN(4) {
			at += span(0, 2*time.Minute)
			current := ailment{from: at, kind: rng.IntN(illnesses), cuts: rng.IntN(2) == 0}
			current.to = at + span(time.Second, []time.Duration{10 * time.Second, time.Minute, 20 * time.Minute, 2 * time.Hour}[rng.IntN(4)])
			at = current.to
			p.illnesses = append(p.illnesses, current)
		}
		w.servers[name] = p
	}
	n, share := 1+rng.IntN(300), []float64{0, 0.01, 0.1, 0.3, 0.5}[rng.IntN(5)]
	kind, mixed := 1+rng.IntN(isInvalid), rng.IntN(3) == 0
	w.poison = make([]int, n)
	for i := range w.poison {
		if rng.Float64() < share {
			w.poison[i] = kind
			if mixed {
				w.poison[i] = 1 + rng.IntN(isInvalid)
			}
		}
	}
	w.ahead = []int{1, 64, 1024}[rng.IntN(3)]
	w.over, w.faults = make([]bool, n), make([]faultsOf, n)
	w.saved.items = map[string]ItemMemory{}
	return w
}

// outcome returns how a call that leaves now ends, and after what time.
func (w *ordeal) outcome(g Grant) (Outcome, time.Duration) {
	p, age := w.servers[g.Lane], w.Now().Sub(storyStart)
	took := p.latency/2 + time.Duration(w.rng.Int64N(int64(p.latency)))
	failed := func(way uint8, after time.Duration) (Outcome, time.Duration) {
		o := Outcome{Signal: Failed, Way: way, Last: g.Item.Attempts+1 >= ordealAttempts, Alike: 500 + uint32(way), Cause: errSimBroke}
		if o.Last && w.strict && !w.run.KeepGoing {
			o.First = 20
		}
		return o, after
	}
	if current := p.at(age); current != nil {
		switch current.kind {
		case isRefused:
			o, after := failed(byError, time.Millisecond)
			o.Unsent, o.Last = true, false
			return o, after
		case isReset:
			return failed(byError, time.Millisecond)
		case isBroken:
			return failed(byError, took)
		case isHung:
			o, after := failed(byTimeout, 2*time.Minute)
			o.Timeout = true
			return o, after
		case isBusy:
			return Outcome{Signal: Overloaded, Cause: errSimBroke}, took / 4
		case isLimiting:
			return Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Second, Cause: errSimBroke}, took / 4
		case isLocked:
			return Outcome{Signal: Exhausted, Alike: 401, First: 1, Later: 5, Cause: errSimExhausted}, took / 4
		}
	}
	if current := p.at(age + took); current != nil && current.cuts && current.kind < isBusy && current.from > age {
		return failed(byError, current.from-age)
	}
	switch w.poison[g.Item.Seq] {
	case breaksSlowly:
		return failed(byError, took)
	case breaksAtOnce:
		return failed(byError, time.Millisecond)
	case isForbidden:
		o := Outcome{Signal: Exhausted, Alike: 403, First: 3, Later: 5, Cause: errSimExhausted}
		if w.run.KeepGoing {
			o.First, o.Later = 0, 0
		}
		return o, took
	case isInvalid:
		o := Outcome{Signal: Answered, Alike: 400, Cause: errSimExhausted}
		if w.strict && !w.run.KeepGoing {
			o.First = 20
		}
		return o, took
	}
	return Outcome{Signal: Succeeded}, took
}

// start begins a process with what the one before it saved.
func (w *ordeal) start() {
	c := w.config
	c.Memory, c.Items, c.AnsweredBefore = w.saved.lanes, w.saved.items, w.answered
	w.m = New(c)
	w.m.Step(w.Now(), RunOpened(1, w.run))
	w.items, w.offered, w.open = make([]*Item, len(w.poison)), 0, 0
	w.savedAt = w.Now()
}

// save writes down what is known.
func (w *ordeal) save() {
	w.saved = memoryOfAll{w.m.SaveLanes(w.Now()), w.m.SaveItems()}
	w.savedAt = w.Now()
}

// read offers the next items as there is room.
func (w *ordeal) read() {
	for ; w.offered < len(w.poison) && w.open < w.ahead+w.run.Concurrency; w.offered++ {
		if w.over[w.offered] {
			continue
		}
		it := &Item{Seq: uint64(w.offered), Pool: "p", Payload: named(fmt.Sprint(w.offered))}
		w.items[w.offered] = it
		w.m.Step(w.Now(), Offered(1, []*Item{it}))
		w.open++
	}
	if w.offered == len(w.poison) {
		w.m.Step(w.Now(), InputEnded(1))
	}
}

// live lets one process happen until it has ended, or is ended at that moment. It says what
// went wrong; "" if nothing did.
func (w *ordeal) live(until time.Time) (wrong string, stopped error) {
	for {
		w.read()
		ready := w.m.Ready(w.Now())
		released := false
		for _, g := range ready.Grants {
			released = released || g.Verdict != Call
			if wrong = w.given(g); wrong != "" {
				return wrong, nil
			}
		}
		for _, s := range ready.Stranded {
			stopped = s.Cause
		}
		if w.steps++; w.steps > ordealSteps {
			return "the world is endless", nil
		}
		if len(ready.Finished) > 0 {
			return "", stopped
		}
		if w.Now().Sub(w.savedAt) >= 2*time.Second {
			w.save()
		}
		if released {
			continue
		}
		wake := until
		if at := ready.WakeAt; !at.IsZero() && at.Before(until) {
			wake = at
		} else if at.IsZero() && w.Planned() == 0 {
			return "the world hangs", nil
		}
		w.Pass(wake)
		switch {
		case !w.Now().Before(until):
			return "", nil
		case w.Now().Sub(storyStart) > ordealMost:
			return "the world is endless: 72 hours are over", nil
		}
		w.Do()
	}
}

// given takes what the machine grants: a call, or an end.
func (w *ordeal) given(g Grant) (wrong string) {
	i := g.Item.Seq
	if g.Verdict == Call {
		o, after := w.outcome(g)
		o.Latency = after
		w.In(after, func() { w.lands(g, o) })
		return ""
	}
	if g.Verdict == EndFailed {
		w.over[i] = true
		wrong = w.isUnjust(g)
	}
	w.open--
	w.m.Step(w.Now(), Settled(g, Outcome{}))
	return wrong
}

// isUnjust finds a good item that has failed though it could be told that it is not to blame.
func (w *ordeal) isUnjust(g Grant) string {
	i, f := g.Item.Seq, w.faults[g.Item.Seq]
	switch {
	case w.poison[i] != 0, f.broke >= ordealAttempts, f.locked > 0:
		return "" // five faults of its own; a key that was bad for a few calls looks like items that are forbidden
	case w.run.KeepGoing:
		return ""
	}
	return fmt.Sprintf("item %d failed, and it is good: %+v, %d attempts", i, f, g.Item.Attempts)
}

// lands tells the machine how a call ended.
func (w *ordeal) lands(g Grant, o Outcome) {
	i := g.Item.Seq
	switch o.Signal {
	case Succeeded:
		w.over[i], w.answered = true, true
		w.open--
		w.m.Step(w.Now(), Settled(g, o))
		return
	case Failed:
		if !o.Unsent {
			w.faults[i].broke++
		}
	case Exhausted:
		w.faults[i].locked++
	}
	w.m.Step(w.Now(), HandedOver(g, o))
}

// happen lets processes follow one another until no item is left, and says what went wrong.
func (w *ordeal) happen() (wrong string) {
	stops := 0
	for range ordealStarts {
		w.run.KeepGoing = w.run.KeepGoing || stops == stopsMost // as the command advises
		w.start()
		until := w.Now().Add(ordealMost)
		if w.rng.IntN(3) == 0 {
			until = w.Now().Add(time.Duration(w.rng.Int64N(int64(3 * time.Minute))))
		}
		wrong, stopped := w.live(until)
		if wrong != "" {
			return wrong
		}
		if stopped != nil && !w.mayStop() {
			return fmt.Sprintf("stopped, and nothing was wrong: %v", stopped)
		}
		if !w.killed {
			w.save()
		}
		if stopped != nil {
			stops++
		}
		if w.left() == 0 || stopped != nil && w.isHopeless() && w.run.KeepGoing {
			return ""
		}
		pause := time.Duration(w.rng.Int64N(int64(10 * time.Minute)))
		w.Time = virtual.Begin(w.Now().Add(pause * time.Duration(1+stops))) // an account may be empty for hours: a person looks less and less often
	}
	return fmt.Sprintf("%d items are left after %d processes", w.left(), ordealStarts)
}

// mayStop reports whether a process had a reason to stop: a bad key, an outage that began
// before anything was answered, or items that are all alike.
func (w *ordeal) mayStop() bool {
	for _, p := range w.servers {
		for _, current := range p.illnesses {
			if current.from < w.Now().Sub(storyStart) {
				return true
			}
		}
	}
	bad := 0
	for _, how := range w.poison {
		if how != 0 {
			bad++
		}
	}
	return bad > 0
}

// isHopeless reports whether each item that is left always fails: a user would see what the
// run stopped by, and change it.
func (w *ordeal) isHopeless() bool {
	for i, over := range w.over {
		if !over && w.poison[i] == 0 {
			return false
		}
	}
	return true
}

func (w *ordeal) left() (n int) {
	for _, over := range w.over {
		if !over {
			n++
		}
	}
	return n
}

// No world is endless, in each a run stops only if it has a reason, and a good item fails
// only by five faults of its own.
func TestBlameSim(t *testing.T) {
	seeds.Each(t, simSeeds, 2, func(seed uint64) {
		if wrong := newOrdeal(seed).happen(); wrong != "" {
			t.Errorf("seed %d: %s\nTo repeat it: SEED=%d go test -run TestBlameSim ./coordinator/machine", seed, wrong, seed)
		}
	})
}
