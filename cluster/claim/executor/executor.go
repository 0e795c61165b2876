package executor

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"
	"golang.org/x/sync/errgroup"

	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/store"
)

const (
	// wordTime bounds each message to the bus.
	wordTime = 2 * time.Second
	// beginTime bounds how long a call waits to be let go: finding the owner of a chunk takes a heartbeat and a
	// list. If the bus is away for longer the chunk goes back. The bound ends the wait before the call's own
	// timeout does, for which the provider would be blamed.
	beginTime = 10 * time.Second
	// storeTime bounds a look at the store, including its own tries.
	storeTime = time.Minute
	// closeTime bounds the end of a journal. A piece that cannot be written for that long is lost, and its items
	// will be called again. Meanwhile the chunk counts as one at hand, so a worker whose store is away stops
	// by itself.
	closeTime = 5 * time.Minute
	// drainTime replaces the rest of closeTime when the worker drains, because somebody waits for it.
	drainTime = 30 * time.Second
	// flushAgain lies between two tries.
	flushAgain = time.Second
	// leaveTime bounds the end of journals when Run is abandoned.
	leaveTime = 2 * time.Second
	// commitEvery bounds how long a result waits for others to be synced with it.
	commitEvery = 10 * time.Millisecond
	// waitingMost bounds the bytes of results that wait for the store, roughly. Above it Took waits.
	waitingMost = 16 << 20
	// lineMost bounds the bytes of a result.
	lineMost = store.MaxLine
	// joinsAtOnce bounds the chunks with all their results in memory.
	joinsAtOnce = 2
	// readAhead is the number of items of a claim that are read in advance.
	readAhead = 16
)

// An Executor runs the claims of one worker. Create one with [New]. Several goroutines may call its
// methods, as each method's comment says.
type Executor struct {
	cfg   Config
	news  chan func() // work and facts for the owner
	took  chan taken
	want  chan chan<- *Item // requests for an item, each with room for one
	over  chan struct{}     // closed: there is no owner any more
	joins chan struct{}
	group errgroup.Group // all goroutines that the owner starts

	// The owner's.
	ctx        context.Context
	closing    context.Context // bounds the end of journals
	hurry      context.CancelFunc
	patience   clockwork.Timer // nil before it drains
	machine    *claim.Machine
	timer      clockwork.Timer
	flying     int // running goroutines of group
	leaving    bool
	draining   bool
	deliveries map[claim.ID]delivered
	number     claim.ID        // of the latest delivery
	fetching   context.Context // bounds fetches
	stopFetch  context.CancelFunc
	desks      map[claim.ID]*desk
	begins     map[place]*begin
	wanting    chan<- *Item
	waiting    int           // bytes of unsaved results
	later      []claim.Event // consequences of current actions
}

// New makes an executor that has no claims.
func New(cfg Config) (*Executor, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	machine, err := claim.New(cfg.Claim)
	if err != nil {
		return nil, err
	}
	machine.Step(cfg.Clock.Now(), claim.Connected{At: cfg.Connected})
	return &Executor{
		cfg: cfg, machine: machine, news: make(chan func()), took: make(chan taken), want: make(chan chan<- *Item),
		over: make(chan struct{}), joins: make(chan struct{}, joinsAtOnce),
		deliveries: make(map[claim.ID]delivered), desks: make(map[claim.ID]*desk), begins: make(map[place]*begin),
	}, nil
}

// Run claims chunks and works on them, once. It returns nil after a drain, once nothing is left. If ctx ends
// first it returns the cause: it then saves the answers received, if the store takes them at once. It
// leaves the rest to the queue, which gives it out again.
func (x *Executor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	x.ctx, x.timer = ctx, x.cfg.Clock.NewTimer(time.Hour)
	x.closing, x.hurry = context.WithCancel(ctx)
	x.fetching, x.stopFetch = context.WithCancel(ctx)
	defer x.timer.Stop()
	err := x.own()
	cancel()
	x.leave()
	if x.patience != nil {
		x.patience.Stop()
	}
	return err
}

// own handles news until nothing is left to do.
func (x *Executor) own() error {
	for {
		wake := x.settle()
		if x.machine.Idle() && x.flying == 0 {
			return nil
		}
		x.arm(wake)
		if !x.next() {
			return context.Cause(x.ctx)
		}
	}
}

// next waits for news and handles it; false: the run is over. While too many results wait for the store,
// it takes no further result.
func (x *Executor) next() bool {
	took, want := x.took, x.want
	if x.waiting >= x.cfg.bounds.waitingMost {
		took = nil
	}
	if x.wanting != nil {
		want = nil
	}
	select {
	case f := <-x.news:
		f()
	case t := <-took:
		x.take(t)
	case x.wanting = <-want:
	case <-x.timer.Chan():
	case <-x.ctx.Done():
		return false
	}
	return x.ctx.Err() == nil
}

// settle takes all actions that follow, and returns when to look again.
func (x *Executor) settle() (wake time.Time) {
	for again := true; again; {
		ready := x.machine.Ready(x.cfg.Clock.Now())
		for _, a := range ready.Do {
			x.do(a)
		}
		wake = ready.WakeAt
		again = x.feed()
		for _, e := range x.later {
			x.step(e)
			again = true
		}
		x.later = nil
	}
	return sooner(wake, x.commit())
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (x *Executor) arm(at time.Time) {
	if at.IsZero() {
		x.timer.Stop()
		return
	}
	x.timer.Reset(max(0, at.Sub(x.cfg.Clock.Now())))
}

func (x *Executor) step(e claim.Event) { x.machine.Step(x.cfg.Clock.Now(), e) }

// tell brings f to the owner; false: the owner has gone.
func (x *Executor) tell(f func()) bool {
	select {
	case x.news <- f:
		return true
	case <-x.over:
		return false
	}
}

// inBackground runs wait in a new goroutine, and the function that wait returns in the owner. Once Run leaves, it
// starts nothing.
func (x *Executor) inBackground(wait func() func()) {
	if x.leaving {
		return
	}
	x.flying++
	x.group.Go(func() error {
		then := wait()
		x.tell(func() {
			x.flying--
			then()
		})
		return nil
	})
}

// bounded returns ctx with a deadline in d.
func (x *Executor) bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return clockwork.WithTimeout(ctx, x.cfg.Clock, d)
}

// leave waits for all goroutines of the group, and ends the journals that are left.
func (x *Executor) leave() {
	x.leaving = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = x.group.Wait() // none returns an error
	}()
	for open := true; open; {
		select {
		case f := <-x.news:
			f()
		case <-ended:
			open = false
		}
	}
	ctx, cancel := x.bounded(context.WithoutCancel(x.ctx), leaveTime)
	defer cancel()
	for _, d := range x.desks {
		d.abandon(ctx)
		d.closeJob()
	}
	close(x.over)
}
