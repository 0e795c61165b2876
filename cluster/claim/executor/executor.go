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
	// wordTime is what anything said to the bus may take.
	wordTime = 2 * time.Second
	// beginTime is how long a call may wait to be let go: to find out whose a chunk is takes a
	// heartbeat and a list. Where the bus is away for longer the chunk goes back, and no call is cut off
	// by its timeout, for which the provider would be blamed.
	beginTime = 10 * time.Second
	// storeTime is what a look at the store may take, its own tries included.
	storeTime = time.Minute
	// closeTime is what the end of a journal may take: a piece that cannot be written for so long
	// is lost, and its items will be called again. Meanwhile the chunk counts as one at hand, so that
	// a worker whose store is away stops by itself.
	closeTime = 5 * time.Minute
	// drainTime is what is left of that when the worker drains: somebody waits for it.
	drainTime = 30 * time.Second
	// flushAgain lies between two tries.
	flushAgain = time.Second
	// leaveTime is what is left for journals when Run is abandoned.
	leaveTime = 2 * time.Second
	// commitEvery is how long a result waits for others to be synced with it.
	commitEvery = 10 * time.Millisecond
	// waitingMost is how many bytes of results may wait for the store, about. Above it Took waits.
	waitingMost = 16 << 20
	// lineMost is how many bytes a result may have.
	lineMost = store.MaxLine
	// joinsAtOnce bounds how many chunks have all their results in memory.
	joinsAtOnce = 2
	// readAhead is how many items of a claim are read before they are wanted.
	readAhead = 16
)

// An Executor lives the claims of one worker. Create one with [New]. Its methods may be called by
// several goroutines, each as its words say.
type Executor struct {
	cfg   Config
	news  chan func() // what the owner is to know or do
	took  chan taken
	want  chan chan<- *Item // whoever waits for an item, which has room
	over  chan struct{}     // closed: there is no owner any more
	joins chan struct{}
	group errgroup.Group // all that runs beside the owner

	// The owner's.
	ctx        context.Context
	closing    context.Context // what the end of a journal has time in
	hurry      context.CancelFunc
	patience   clockwork.Timer // nil before it drains
	machine    *claim.Machine
	timer      clockwork.Timer
	flying     int // how many run beside
	leaving    bool
	draining   bool
	deliveries map[claim.ID]delivered
	number     claim.ID        // of the latest delivery
	fetching   context.Context // what fetches have time in
	stopFetch  context.CancelFunc
	desks      map[claim.ID]*desk
	begins     map[place]*begin
	wanting    chan<- *Item
	waiting    int           // bytes of results that are not saved
	later      []claim.Event // that follow from what is being done
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

// Run claims chunks and works on them, once. It returns nil when it was told to drain and nothing
// is left, and the cause of ctx's end else: then what was answered is saved, if the store
// takes it at once, and all else is left to the queue, which gives it out again.
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

// own does what follows from the news until there is nothing left to do.
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

// next waits for news and takes it; false: nobody wants to know any more. While too many results
// wait for the store, none is taken.
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

// settle does all that follows, and tells when to look again.
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

// tell brings news to the owner; false: there is none any more.
func (x *Executor) tell(f func()) bool {
	select {
	case x.news <- f:
		return true
	case <-x.over:
		return false
	}
}

// beside runs what waits, and then in the owner what it returns. Once Run leaves, nothing is begun.
func (x *Executor) beside(wait func() func()) {
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

// bounded is ctx with so much time.
func (x *Executor) bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return clockwork.WithTimeout(ctx, x.cfg.Clock, d)
}

// leave waits for all that runs beside, and ends the journals that are left.
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
