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
	// asksKept bounds the asks that wait to be heard: two seconds of 400 workers. A worker repeats an ask that is
	// dropped.
	asksKept = 1 << 13
	// asksAtOnce bounds the asks heard between two decisions, and so the wait of the first one.
	asksAtOnce = 512
	// snapshotEvery is the time between two snapshots for the next keeper. Half a second's knowledge is soon learned
	// again.
	snapshotEvery = 500 * time.Millisecond
	// statusEvery is the time between two reports of the state of all limits.
	statusEvery = time.Second
	// listEvery is the time between two reads of the limits that people have set in the store.
	listEvery = time.Minute
	// newsKept bounds the messages that wait to be heard.
	newsKept = 4096
)

// errOutbid ends a keeper that has heard of a later one.
var errOutbid = errors.New("keeping: there is a later keeper")

// A snapshot is one keeper's knowledge for the next. The next keeper empties the levels in Memory, so that permits which
// are still out stay covered.
type snapshot struct {
	Limits map[string]machine.LaneConfig `json:"limits,omitempty"`
	Memory map[string]machine.LaneMemory `json:"memory,omitempty"`
	Stops  map[string]*permit.Cause      `json:"stops,omitempty"`
	Jobs   map[string][]string           `json:"jobs,omitempty"` // the jobs under limits that have stopped
}

// A Keeper is a keeper.Keeper at work: one goroutine hears the workers' asks, decides, and sends the result.
type Keeper struct {
	cfg         *Config
	clock       clockwork.Clock
	epoch       uint64
	keeper      *keeper.Keeper
	limits      map[string]machine.LaneConfig // as they were set
	halted      map[string][]string           // the jobs under limits that have stopped: their workers ask no more
	orders      chan order                    // from the scheduler, and from people
	terms       chan time.Time                // when this process stops being keeper; one place, the latest counts
	keeperUntil time.Time                     // the latest of them
	put         func(snapshot)                // stores a snapshot; it does not wait
	timer       clockwork.Timer
	armed       time.Time // when the timer will fire; zero: it will not
	putAt       time.Time // when the latest snapshot was stored,
	reportedAt  time.Time // and the status reported
}

// An order is an input of a keeper other than an ask.
type order func(now time.Time, k *Keeper)

// jobOrder sets a job's share of the limits; 0: the job is over.
func jobOrder(name string, weight float64) order {
	return func(now time.Time, k *Keeper) {
		if weight > 0 {
			k.keeper.Job(now, name, weight)
		} else {
			k.keeper.JobGone(now, name)
		}
	}
}

// limitOrder defines a limit, unless the keeper knows it already.
func limitOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *Keeper) {
		if _, known := k.limits[name]; !known {
			k.define(now, name, c)
		}
	}
}

// setOrder defines a limit from now on, whatever the keeper knew of it.
func setOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *Keeper) { k.define(now, name, c) }
}

// resetOrder says that a person vouches for a limit.
func resetOrder(name string) order {
	return func(now time.Time, k *Keeper) {
		k.keeper.Reset(now, name)
		if _, known := k.limits[name]; known {
			k.keeper.Remind(now, name) // a keeper that died may have stopped it without this one's knowledge
		}
	}
}

// vouchOrder says that a person vouches for the limits that a job is under. It tells all workers how the other limits
// stand. A keeper that died before its next snapshot may have stopped the job's limits.
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

// define sets the properties of a limit, here and in the keeper's machine.
func (k *Keeper) define(now time.Time, name string, c machine.LaneConfig) {
	k.limits[name] = c
	k.keeper.Limit(now, name, c)
}

// newKeeper makes a keeper with the knowledge of the one before. It sends nothing before until
// says how long it is keeper.
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

// until sets the time at which this process stops being keeper. It has one caller.
func (k *Keeper) until(t time.Time) {
	select {
	case <-k.terms:
	default:
	}
	k.terms <- t // has room: nobody else sends
}

// Job tells the keeper a job's share of the limits; 0: the job is over.
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

// run keeps until ctx ends, or until it hears of a later keeper, which is errOutbid.
func (k *Keeper) run(ctx context.Context) error {
	asks, err := k.cfg.Bus.Asks(asksKept)
	if err != nil {
		return err
	}
	defer asks.Close()
	defer k.timer.Stop()
	k.putAt = k.clock.Now()
	for {
		now, open := k.next(ctx, asks)
		if !open {
			return ctx.Err()
		}
		var wake time.Time
		if now.Before(k.keeperUntil) { // else it hears, and sends nothing: another may be keeper
			out := k.keeper.Ready(now)
			k.send(&out)
			if out.Outbid > 0 {
				return errOutbid
			}
			wake = out.WakeAt
		}
		k.storeAndReport(now)
		k.arm(now, wake)
	}
}

// next waits for an event and absorbs it. After an ask it also absorbs waiting asks, up to asksAtOnce. false: the
// run is over.
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
		k.hearWaiting(now, asks)
	case o := <-k.orders:
		now = k.clock.Now()
		o(now, k)
	case k.keeperUntil = <-k.terms:
		now = k.clock.Now()
	case now = <-k.timer.Chan():
		k.armed = time.Time{}
	}
	return now, ctx.Err() == nil
}

// hear passes an ask to the keeper. An ask that the keeper rejects gets no answer. Its worker speaks another version,
// or is one too many, and stops by itself. An ask that names a later keeper unknown to the store is not heard either:
// the candidate looks there with each renewal. Nor is an ask under a limit that nobody has defined: a worker defines a
// limit when it first has a call under it, and then each second.
func (k *Keeper) hear(now time.Time, a permit.Ask) {
	if _, known := k.limits[a.Limit]; known && a.Epoch <= max(k.epoch, k.cfg.Epochs.latest.Load()) {
		_ = k.keeper.Heard(now, a)
	}
}

// hearWaiting hears the asks that wait already, without waiting for more. It hears asksAtOnce at most.
func (k *Keeper) hearWaiting(now time.Time, asks *bus.Feed[permit.Ask]) {
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

// send sends the decisions. A message that cannot be sent is lost, as it may be on the way. The keeper forgets
// permits of which it hears nothing.
func (k *Keeper) send(out *keeper.Out) {
	for _, c := range out.Cools {
		_ = k.cfg.Bus.SendCool(c)
	}
	for _, g := range out.Gives {
		_ = k.cfg.Bus.SendGive(g)
	}
}

// storeAndReport stores a snapshot and reports the status, when each is due.
func (k *Keeper) storeAndReport(now time.Time) {
	if now.Sub(k.putAt) >= snapshotEvery {
		k.putAt = now
		s := k.keeper.Status(now)
		k.noteStops(&s) // a stop whose jobs nobody knows would outlast their resumption
		k.put(snapshot{Limits: maps.Clone(k.limits), Memory: k.keeper.Save(now), Stops: k.keeper.Stops(), Jobs: maps.Clone(k.halted)})
	}
	if now.Sub(k.reportedAt) >= statusEvery {
		k.reportedAt = now
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

// arm sets the only timer to the keeper's next moment, or to the next snapshot if that is sooner.
func (k *Keeper) arm(now, at time.Time) {
	if latest := k.putAt.Add(snapshotEvery); at.IsZero() || at.After(latest) {
		at = latest
	}
	if at.Equal(k.armed) {
		return
	}
	k.armed = at
	k.timer.Reset(max(0, at.Sub(now)))
}
