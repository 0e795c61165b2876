package keeping

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

const (
	// asksKept is how many asks may wait to be heard: two seconds of 400 workers. What is dropped is
	// said again by who said it.
	asksKept = 1 << 13
	// asksAtOnce is how many asks are heard before the keeper decides: it bounds how long the first waits.
	asksAtOnce = 512
	// snapshotEvery is how often the keeper puts what it knows aside for the one after it. What it
	// has learned in half a second is soon learned again.
	snapshotEvery = 500 * time.Millisecond
	// statusEvery is how often it is said how everything stands.
	statusEvery = time.Second
	// listEvery is how often the store is asked for what people have said of limits.
	listEvery = time.Minute
	// newsKept is how many words may wait to be heard.
	newsKept = 4096
)

// errOutbid ends a keeper that has heard of a later one.
var errOutbid = errors.New("keeping: there is a later keeper")

// A snapshot is what one keeper leaves to the next. It says nothing of what was in hand: the next
// begins with nothing.
type snapshot struct {
	Limits map[string]machine.LaneConfig `json:"limits,omitempty"`
	Memory map[string]machine.LaneMemory `json:"memory,omitempty"`
	Stops  map[string]*permit.Cause      `json:"stops,omitempty"`
	Jobs   map[string][]string           `json:"jobs,omitempty"` // that are under the limits that have stopped
}

// A Keeper is a keeper.Keeper at work: one goroutine hears what workers ask, decides, and says what follows.
type Keeper struct {
	cfg    *Config
	clock  clockwork.Clock
	epoch  uint64
	keeper *keeper.Keeper
	limits map[string]machine.LaneConfig // as they were told
	halted map[string][]string           // the jobs under limits that have stopped: their workers ask no more
	orders chan order                    // from the foreman, and from people
	terms  chan time.Time                // until when it is keeper; one place, the latest counts
	good   time.Time                     // the latest of them
	put    func(snapshot)                // puts what is known aside; it does not wait
	timer  clockwork.Timer
	armed  time.Time // when the timer will fire; zero: it will not
	put0   time.Time // when a snapshot was last put aside,
	said   time.Time // and the status said
}

// An order is something that a keeper is told beside asks.
type order func(now time.Time, k *Keeper)

// jobOrder says what share of the limits a job has; 0: it is over.
func jobOrder(name string, weight float64) order {
	return func(now time.Time, k *Keeper) {
		if weight > 0 {
			k.keeper.Job(now, name, weight)
		} else {
			k.keeper.JobGone(now, name)
		}
	}
}

// limitOrder says what a limit is like, unless that is known.
func limitOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *Keeper) {
		if _, known := k.limits[name]; !known {
			k.define(now, name, c)
		}
	}
}

// setOrder says what a limit is like from now on, whatever was known.
func setOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *Keeper) { k.define(now, name, c) }
}

// resetOrder says that a person vouches for a limit.
func resetOrder(name string) order {
	return func(now time.Time, k *Keeper) {
		k.keeper.Reset(now, name)
		if _, known := k.limits[name]; known {
			k.keeper.Remind(now, name) // a keeper that died may have stopped it, and this one not know
		}
	}
}

// vouchOrder says that a person vouches for the limits that a job is under. All workers are told how the others stand: the job's
// may have been stopped by a keeper that died before it put that aside.
func vouchOrder(job string) order {
	return func(now time.Time, k *Keeper) {
		s := k.keeper.Status(now)
		k.noteStops(&s)
		for limit := range k.limits {
			if slices.Contains(k.halted[limit], job) {
				k.keeper.Reset(now, limit)
				delete(k.halted, limit)
				continue
			}
			k.keeper.Remind(now, limit)
		}
	}
}

func (k *Keeper) define(now time.Time, name string, c machine.LaneConfig) {
	k.limits[name] = c
	k.keeper.Limit(now, name, c)
}

func newKeeper(cfg *Config, epoch uint64, seed uint64, before snapshot) *Keeper {
	limits := before.Limits
	if limits == nil {
		limits = map[string]machine.LaneConfig{}
	}
	halted := map[string][]string{}
	maps.Copy(halted, before.Jobs)
	timer := cfg.Clock.NewTimer(time.Hour)
	timer.Stop()
	return &Keeper{
		cfg: cfg, clock: cfg.Clock, epoch: epoch, limits: limits, halted: halted, orders: make(chan order), terms: make(chan time.Time, 1), timer: timer,
		keeper: keeper.New(keeper.Config{Epoch: epoch, Seed: seed, Limits: limits, Memory: before.Memory, Stops: before.Stops}),
	}
}

// until says until when it is keeper. One caller alone says so.
func (k *Keeper) until(t time.Time) {
	select {
	case <-k.terms:
	default:
	}
	k.terms <- t // has room: nobody else sends
}

// Job tells the keeper what share of the limits a job has; 0: it is over.
func (k *Keeper) Job(ctx context.Context, name string, weight float64) {
	k.tell(ctx, jobOrder(name, weight))
}

// Vouch tells the keeper that a person vouches for the limits that a job is under.
func (k *Keeper) Vouch(ctx context.Context, job string) { k.tell(ctx, vouchOrder(job)) }

// tell gives an order, unless ctx ends.
func (k *Keeper) tell(ctx context.Context, o order) {
	select {
	case k.orders <- o:
	case <-ctx.Done():
	}
}

// run keeps until ctx ends or a later keeper is heard of, which is errOutbid.
func (k *Keeper) run(ctx context.Context) error {
	asks, err := k.cfg.Bus.Asks(asksKept)
	if err != nil {
		return err
	}
	defer asks.Close()
	defer k.timer.Stop()
	k.put0 = k.clock.Now()
	for {
		now, open := k.next(ctx, asks)
		if !open {
			return ctx.Err()
		}
		var wake time.Time
		if now.Before(k.good) { // else it hears, and says nothing: another may be keeper
			out := k.keeper.Ready(now)
			k.send(&out)
			if out.Outbid > 0 {
				return errOutbid
			}
			wake = out.WakeAt
		}
		k.aside(now)
		k.arm(now, wake)
	}
}

// next waits for something to happen and absorbs it, and what else is there; false: it is over.
func (k *Keeper) next(ctx context.Context, asks *bus.Feed[permit.Ask]) (now time.Time, open bool) {
	select {
	case <-ctx.Done():
		return now, false
	case a, ok := <-asks.C:
		now = k.clock.Now()
		if !ok {
			return now, false
		}
		k.hear(now, a)
		k.absorb(now, asks)
	case o := <-k.orders:
		now = k.clock.Now()
		o(now, k)
	case k.good = <-k.terms:
		now = k.clock.Now()
	case now = <-k.timer.Chan():
		k.armed = time.Time{}
	}
	return now, ctx.Err() == nil
}

// hear tells the keeper an ask. One that it does not hear is answered by silence: the worker that
// sent it speaks another version, or is one too many, and stops by itself. Neither is one heard that names a later keeper
// of whom the store knows nothing: the candidate looks there with each renewal.
func (k *Keeper) hear(now time.Time, a permit.Ask) {
	if a.Epoch <= max(k.epoch, k.cfg.Epochs.latest.Load()) && k.knows(&a) {
		_ = k.keeper.Heard(now, a)
	}
}

func (k *Keeper) absorb(now time.Time, asks *bus.Feed[permit.Ask]) {
	for range asksAtOnce {
		select {
		case a, ok := <-asks.C:
			if !ok {
				return
			}
			k.hear(now, a)
		default:
			return
		}
	}
}

// send says what was decided. What cannot be sent is lost, as it may be on the way: permits of
// which nothing is heard are forgotten.
func (k *Keeper) send(out *keeper.Out) {
	for _, c := range out.Cools {
		_ = k.cfg.Bus.SendCool(c)
	}
	for _, g := range out.Gives {
		_ = k.cfg.Bus.SendGive(g)
	}
}

// aside puts what is known aside, and says how it stands, when it is time.
func (k *Keeper) aside(now time.Time) {
	if now.Sub(k.put0) >= snapshotEvery {
		k.put0 = now
		s := k.keeper.Status(now)
		k.noteStops(&s) // a stop whose jobs nobody knows would outlast their resumption
		k.put(snapshot{Limits: maps.Clone(k.limits), Memory: k.keeper.Save(now), Stops: k.keeper.Stops(), Jobs: maps.Clone(k.halted)})
	}
	if now.Sub(k.said) >= statusEvery {
		k.said = now
		k.cfg.Status(k.keeper.Status(now))
	}
}

// noteStops remembers which jobs are under limits that have stopped.
func (k *Keeper) noteStops(s *keeper.Status) {
	for i := range s.Limits {
		l := &s.Limits[i]
		if l.Stopped == nil {
			delete(k.halted, l.Name)
			continue
		}
		for _, j := range l.Jobs {
			if !slices.Contains(k.halted[l.Name], j.Name) {
				k.halted[l.Name] = append(k.halted[l.Name], j.Name)
			}
		}
	}
}

// arm sets the one timer: to what the keeper waits for, and to the next snapshot at the latest.
func (k *Keeper) arm(now, at time.Time) {
	if latest := k.put0.Add(snapshotEvery); at.IsZero() || at.After(latest) {
		at = latest
	}
	if at.Equal(k.armed) {
		return
	}
	k.armed = at
	k.timer.Reset(max(0, at.Sub(now)))
}
