package keeping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/store"
)

// A Candidacy says whether a process may be keeper.
type Candidacy string

// The candidacies.
const (
	MayKeep     Candidacy = "may"
	NeverKeeps  Candidacy = "never"
	PrefersKeep Candidacy = "prefer" // before those that may
)

// ParseCandidacy reads one of the words.
func ParseCandidacy(word string) (Candidacy, error) {
	switch c := Candidacy(word); c {
	case MayKeep, NeverKeeps, PrefersKeep:
		return c, nil
	}
	return "", fmt.Errorf("%q is invalid: want may, never or prefer", word)
}

// leaseShare divides a term: a request about the lease may take a quarter of the term. One lost request must not cost
// the lease.
const leaseShare = 4

// An Election is this process's part in the election of the keeper. One goroutine passes facts from the bus and the
// store to a lease.Lease, obeys it, and runs a keeper while this process is one.
type Election struct {
	cfg      Config
	clock    clockwork.Clock
	lease    *lease.Lease
	facts    chan lease.Fact
	mismatch chan error    // holds why this process no longer belongs to the store; one place
	latest   chan snapshot // holds the keeper's latest snapshot; one place
	seed     *rand.Rand

	running *term // nil: it is not keeper
	stored  time.Time
	storing chan struct{} // full while the law is being stored: a store that hangs holds one goroutine, not one each time
	looking chan struct{} // likewise, during a look for the latest epoch
	work    sync.WaitGroup
}

// Config holds what a process needs to stand for keeper.
type Config struct {
	Bus       *bus.Bus // its name is the candidate's
	Home      store.Store
	Clock     clockwork.Clock
	Epochs    *Epochs
	Candidacy Candidacy // "" is PrefersKeep
	Term      time.Duration
	Seed      uint64
	// SameHub returns an error if the store names another hub, which is foreign, or cannot be asked.
	SameHub func(ctx context.Context) (mismatch bool, err error)
	// Scheduler runs next to each keeper, until ctx ends.
	Scheduler func(ctx context.Context, k *Keeper)
	// Status receives the state of all limits once a second; it does not wait.
	Status func(keeper.Status)
	// Say receives messages for a person; it does not wait.
	Say func(string)
}

// A term is a keeper at work, from winning the lease until losing it.
type term struct {
	epoch uint64
	keep  *Keeper
	stop  context.CancelFunc
	ended chan struct{}
}

// New makes a candidate that does not stand yet.
func New(cfg Config) *Election {
	return &Election{
		cfg: cfg, clock: cfg.Clock, facts: make(chan lease.Fact), mismatch: make(chan error, 1), latest: make(chan snapshot, 1),
		storing: make(chan struct{}, 1), looking: make(chan struct{}, 1),
		lease: lease.New(lease.Config{Who: cfg.Bus.Name(), Term: cfg.Term, Yields: cfg.Candidacy == MayKeep}),
		seed:  rand.New(rand.NewPCG(cfg.Seed, 0x6b656570)), //nolint:mnd // any second word will do
	}
}

// Run stands for keeper until ctx ends, and keeps while this process is keeper. It returns an error once the store
// names another hub.
func (c *Election) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer c.work.Wait()
	defer c.end()
	defer stop() // first of all: actions wait for it, or for this goroutine
	timer := c.clock.NewTimer(0)
	defer timer.Stop()
	for {
		var ended <-chan struct{}
		if c.running != nil {
			ended = c.running.ended
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.mismatch:
			return err
		case f := <-c.facts:
			c.lease.Step(c.clock.Now(), f)
		case s := <-c.latest:
			c.saveSnapshot(ctx, s)
		case <-ended:
			c.giveUpLease()
		case <-timer.Chan():
		}
		now := c.clock.Now()
		c.decide(ctx, now, timer)
	}
}

// decide begins the actions that the lease wants now, and sets the timer to its next moment.
func (c *Election) decide(ctx context.Context, now time.Time, timer clockwork.Timer) {
	r := c.lease.Ready(now)
	for _, a := range r.Do {
		c.begin(ctx, a)
	}
	c.startOrEnd(ctx, now)
	at := r.WakeAt
	if _, until, is := c.lease.Keeper(now); is && (at.IsZero() || until.Before(at)) {
		at = until
	}
	if !at.IsZero() {
		timer.Reset(max(0, at.Sub(now)))
	}
}

// startOrEnd runs a keeper while the lease says that this process is keeper. A keeper whose lease has lapsed sends
// nothing until the lease is written again, or another holds it.
func (c *Election) startOrEnd(ctx context.Context, now time.Time) {
	epoch, until, is := c.lease.Keeper(now)
	if c.running != nil && c.running.epoch != epoch {
		c.end()
	}
	if is && c.running == nil {
		c.start(ctx, epoch)
	}
	if c.running != nil {
		c.running.keep.until(until)
	}
}

// start begins a term: a keeper with the knowledge of the one before, and a scheduler next to it.
// The term has ended only when both have, so a process never has two keepers at work.
func (c *Election) start(ctx context.Context, epoch uint64) {
	before := c.loadSnapshot(ctx)
	k := newKeeper(&c.cfg, epoch, c.seed.Uint64(), before)
	k.put = c.handOver
	ctx, stop := context.WithCancel(ctx)
	t := &term{epoch: epoch, keep: k, stop: stop, ended: make(chan struct{}, 1)}
	c.running = t
	c.work.Go(func() {
		var scheduler sync.WaitGroup
		scheduler.Go(func() { k.hearLimits(ctx) })
		scheduler.Go(func() { c.cfg.Scheduler(ctx, k) })
		_ = k.run(ctx) // the reason makes no difference: this process is keeper no more
		stop()
		scheduler.Wait()
		t.ended <- struct{}{}
	})
}

// end stops the running keeper, if there is one, and waits for its end.
func (c *Election) end() {
	if c.running == nil {
		return
	}
	c.running.stop()
	<-c.running.ended
	c.running = nil
}

// giveUpLease gives up the lease after the keeper has ended by itself, as it does when there is a later one.
func (c *Election) giveUpLease() {
	c.lease.Step(c.clock.Now(), lease.EpochHeard{Epoch: c.running.epoch + 1})
	c.running.stop()
	c.running = nil
}

// handOver hands over the keeper's latest snapshot in place of an older one, and does not wait.
func (c *Election) handOver(s snapshot) {
	select {
	case <-c.latest:
	default:
	}
	select {
	case c.latest <- s:
	default:
	}
}

// saveSnapshot puts a snapshot into the lease with its next write, and into the store now and then.
func (c *Election) saveSnapshot(ctx context.Context, s snapshot) {
	text, err := json.Marshal(s)
	if err != nil {
		return // the next keeper learns it again
	}
	if len(text) <= maxSnapshotBytes {
		c.lease.Snapshot(text)
	}
	if now := c.clock.Now(); now.Sub(c.stored) >= lawEvery && c.running != nil && tryEnter(c.storing) {
		c.stored = now
		epoch := c.running.epoch
		c.work.Go(func() {
			defer leave(c.storing)
			storeLaw(ctx, c.cfg.Home, epoch, text)
		})
	}
}

// tryEnter takes the only place; false: it is taken.
func tryEnter(place chan struct{}) bool {
	select {
	case place <- struct{}{}:
		return true
	default:
		return false
	}
}

func leave(place chan struct{}) { <-place }

// maxSnapshotBytes bounds a snapshot in the lease, in bytes: a bus value less its envelope. A larger snapshot is in the
// store alone.
const maxSnapshotBytes = bus.MaxLease - 4<<10

// loadSnapshot returns the previous keeper's snapshot: from the lease, or from the store if the bus has forgotten it.
func (c *Election) loadSnapshot(ctx context.Context) (s snapshot) {
	text := c.lease.Before()
	if len(text) == 0 || json.Unmarshal(text, &s) != nil || s.Memory == nil {
		ctx, stop := clockwork.WithTimeout(ctx, c.clock, c.cfg.Term/leaseShare)
		defer stop()
		s = loadLaw(ctx, c.cfg.Home)
	}
	return s
}

// begin does an action in a goroutine of its own, which reports the result as a fact.
func (c *Election) begin(ctx context.Context, a lease.Action) {
	c.work.Go(func() {
		if f := c.do(ctx, a); f != nil {
			select {
			case c.facts <- f:
			case <-ctx.Done():
			}
		}
	})
}

// do carries out an action of the lease, and returns its result as a fact; nil: there is nothing
// to report. A process whose store names another hub gets no epoch.
func (c *Election) do(ctx context.Context, a lease.Action) lease.Fact {
	wait := c.cfg.Term / leaseShare
	switch a := a.(type) {
	case lease.Read:
		return c.read(ctx, wait)
	case lease.Write:
		revision, err := c.cfg.Bus.UpdateLease(ctx, a.Value.Marshal(), a.Revision, wait)
		if errors.Is(err, bus.ErrTaken) {
			return lease.WriteEnded{Taken: true}
		}
		return lease.WriteEnded{Revision: revision, Err: err}
	case lease.Mint:
		if err := c.sameHub(ctx); err != nil {
			return lease.MintEnded{Err: err}
		}
		epoch, err := c.cfg.Epochs.mint(ctx, c.cfg.Bus.Name())
		return lease.MintEnded{Epoch: epoch, Err: err}
	case lease.FindEpoch:
		return c.latestEpoch(ctx)
	}
	return nil
}

// sameHub returns an error if the store names another hub, or cannot be asked. Another hub ends the candidate.
func (c *Election) sameHub(ctx context.Context) error {
	mismatch, err := c.cfg.SameHub(ctx)
	if mismatch {
		select {
		case c.mismatch <- err:
		default: // one is there already
		}
	}
	return err
}

// latestEpoch finds the latest epoch, unless another look is under way: the lease wants one with each write.
func (c *Election) latestEpoch(ctx context.Context) lease.Fact {
	if !tryEnter(c.looking) {
		return nil
	}
	defer leave(c.looking)
	epoch, err := c.cfg.Epochs.Latest(ctx)
	if err != nil || c.sameHub(ctx) != nil {
		return nil
	}
	return lease.EpochHeard{Epoch: epoch}
}

// read reads the lease. It makes a bucket that is gone; a missing bucket does not show that nobody is keeper.
func (c *Election) read(ctx context.Context, wait time.Duration) lease.Fact {
	content, err := c.cfg.Bus.ReadLease(ctx, wait)
	if errors.Is(err, bus.ErrGone) {
		_ = c.cfg.Bus.EnsureLease(ctx) // if it fails, the next read finds it gone again
	}
	if err != nil {
		return lease.ReadEnded{Err: err}
	}
	v, ok := lease.Parse(content.Value)
	if content.Value != nil && !ok {
		v = lease.Value{} // of another kind: it is written over like any other, a term from now
	}
	if !c.cfg.Epochs.Believes(ctx, v.Epoch) { // its writer may hold the lease, but no epoch is minted above a false one
		v.Epoch = 0
	}
	return lease.ReadEnded{Found: content.Value != nil, Value: v, Revision: content.Revision}
}
