package executor

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
	"github.com/jonboulle/clockwork"
	"golang.org/x/sync/errgroup"
)

// A Queue gives out chunks.
type Queue interface {
	// Fetch waits some seconds for a chunk of a job: came is false if there was none. It ends with ctx. Several
	// goroutines call it, each for another job.
	Fetch(ctx context.Context, job string) (d Delivery, came bool, err error)
}

// A Delivery is a chunk that was given out. Several goroutines call its methods, which end with ctx.
type Delivery interface {
	Body() []byte // the JSON of a job.Chunk
	// Working says that the chunk is being worked on: nil once the queue has heard it. The error is of kind
	// [ErrForgotten] if the queue does not know the delivery.
	Working(ctx context.Context) error
	// Done says, once, that the chunk needs no more work: nil once the queue has heard it, or if it does not know the delivery.
	Done(ctx context.Context) error
	// Return puts the chunk back, to be given out again after that time and not before.
	Return(ctx context.Context, after time.Duration) error
}

// ErrForgotten is the kind of error of a queue that does not know a delivery: it has lost its state.
var ErrForgotten = errors.New("executor: the queue has forgotten it")

// Peers are the other workers, and the processes that count parts. Several goroutines call the methods,
// which end with ctx.
type Peers interface {
	// Holds asks a worker whether it works on a chunk. answered is false if it said nothing. Holds does not decide
	// how long an answer counts: it waits longer than claim.Config.AskTime.
	Holds(ctx context.Context, who string, c claim.Chunk) (holds, answered bool, err error)
	// Tell informs a worker that another claim has the chunk now.
	Tell(ctx context.Context, who string, c claim.Chunk, name claim.Name) error
	// SayDone announces that a chunk's part is there. footer holds the sums of a part that this worker made, as
	// the JSON of a parts.Sums; it is nil for a part that was there.
	SayDone(c job.Chunk, footer []byte)
}

// A Job says how to read, call and write the chunks of one job. Several goroutines may call its functions
// at once, except that one goroutine alone calls Item, and one alone calls Line.
type Job struct {
	// Read reads a chunk, with keys as in the whole input. A bad line is a *prompts.LineError, and
	// the reading goes on; any other error ends it.
	Read func(context.Context, job.Chunk) iter.Seq2[prompts.Request, error]
	// Again returns which keys of a chunk a later round has: those that failed in the round before.
	// It is not called for round 0.
	Again func(context.Context, job.Chunk) (func(key string) bool, error)
	// Item makes the stream's item of a request. Its Pool is that of the job.
	Item func(prompts.Request) *promptfile.Item
	// Reserve sets aside what a call may cost, before it leaves. paid gets its end, or [ErrRefused] if it did not
	// leave. After an error the item counts as one that was not run, and its chunk goes back. nil: calls need no money.
	Reserve func(context.Context, *promptfile.Item) (paid func(provider.Reply, error), err error)
	// Call makes one call.
	Call func(context.Context, *promptfile.Item) (provider.Reply, error)
	// Line makes the line of an item that ended; ended is false if it was not run.
	Line func(*promptfile.Result) (l journal.Line, ended bool)
	// BadLine makes the line of an input line that is not asked.
	BadLine func(*prompts.LineError) journal.Line
	// Close ends one use of the opened job; may be nil.
	Close func()
}

// Config holds the settings of an [Executor]. Store, Queue, Peers and Open are needed.
type Config struct {
	Claim     claim.Config
	Connected time.Time // since when the bus is there

	Store store.Store
	Queue Queue
	Peers Peers
	// Open is called once for each claim that begins to work.
	Open func(ctx context.Context, job string) (*Job, error)

	Journal store.JournalConfig
	Clock   clockwork.Clock // nil is the real clock
	// Say receives notices for people, in whole sentences. It must not block. nil: nobody
	// hears them.
	Say func(string)

	bounds bounds
}

// bounds hold the constants of those names, except where a test sets others.
type bounds struct{ waitingMost, lineMost int }

// complete checks the settings, and fills in defaults. It refuses a dot in the worker's name,
// which is part of a journal's name: the store permits no dot there.
func (c *Config) complete() error {
	if c.Store == nil || c.Queue == nil || c.Peers == nil || c.Open == nil {
		return errors.New("executor: config: a store, a queue, peers and a way to open jobs are needed")
	}
	if strings.Contains(c.Claim.Who, ".") {
		return errors.New("executor: config: a worker's name has no dot in it")
	}
	if c.Clock == nil {
		c.Clock = clockwork.NewRealClock()
	}
	if c.Journal.Clock == nil {
		c.Journal.Clock = c.Clock
	}
	if c.Say == nil {
		c.Say = func(string) {}
	}
	c.bounds.waitingMost = cmp.Or(c.bounds.waitingMost, waitingMost)
	c.bounds.lineMost = cmp.Or(c.bounds.lineMost, lineMost)
	return nil
}

const (
	// replyTime bounds each message to the bus.
	replyTime = 2 * time.Second
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
	cfg      Config
	news     chan func() // work and facts for the owner
	took     chan endedItem
	requests chan chan<- *Item // requests for an item, each with room for one
	over     chan struct{}     // closed: there is no owner any more
	joins    chan struct{}
	group    errgroup.Group // all goroutines that the owner starts

	// The owner's.
	ctx           context.Context
	closing       context.Context // bounds the end of journals
	hurry         context.CancelFunc
	patience      clockwork.Timer // nil before it drains
	machine       *claim.Machine
	timer         clockwork.Timer
	flying        int // running goroutines of group
	leaving       bool
	draining      bool
	deliveries    map[claim.ID]delivered
	number        claim.ID        // of the latest delivery
	fetching      context.Context // bounds fetches
	stopFetch     context.CancelFunc
	states        map[claim.ID]*claimState
	begins        map[itemKey]*pendingCall
	waitingCaller chan<- *Item
	waiting       int           // bytes of unsaved results
	later         []claim.Event // consequences of current actions
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
		cfg: cfg, machine: machine, news: make(chan func()), took: make(chan endedItem), requests: make(chan chan<- *Item),
		over: make(chan struct{}), joins: make(chan struct{}, joinsAtOnce),
		deliveries: make(map[claim.ID]delivered), states: make(map[claim.ID]*claimState), begins: make(map[itemKey]*pendingCall),
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
	took, want := x.took, x.requests
	if x.waiting >= x.cfg.bounds.waitingMost {
		took = nil
	}
	if x.waitingCaller != nil {
		want = nil
	}
	select {
	case f := <-x.news:
		f()
	case t := <-took:
		x.handleResult(t)
	case x.waitingCaller = <-want:
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
	for _, d := range x.states {
		d.abandon(ctx)
		d.closeJob()
	}
	close(x.over)
}

// Answer reports whether this worker works on a chunk, for another worker that asks before it claims it. Once
// Run has returned it returns false. Before Run is called it blocks, as do all methods that bring news.
func (x *Executor) Answer(c claim.Chunk) (holds bool) {
	answer := make(chan bool, 1)
	if !x.tell(func() { answer <- x.machine.Holds(c) }) {
		return false
	}
	select {
	case holds = <-answer:
		return holds
	case <-x.over:
		return false
	}
}

// ClaimedByOther passes on that another worker has claimed a chunk, under this name.
func (x *Executor) ClaimedByOther(c claim.Chunk, name claim.Name) {
	x.hear(claim.ClaimedByOther{Chunk: c, Name: name})
}

// Connected passes on since when the bus is there, after each absence.
func (x *Executor) Connected(at time.Time) { x.hear(claim.Connected{At: at}) }

// Drain lets calls in flight finish, and ends the run. Items yields nothing more, and waiting items are refused
// when their turn comes. Drain the stream as well to avoid that wait.
func (x *Executor) Drain() {
	x.tell(func() {
		if x.draining {
			return
		}
		x.draining = true
		x.patience = x.cfg.Clock.AfterFunc(drainTime, x.hurry)
		x.stopFetch()
		x.step(claim.Drained{})
	})
}

// Offer sets the jobs of which the queue has chunks. The executor fetches no others.
func (x *Executor) Offer(jobs []string) { x.hear(claim.Offered{Jobs: jobs}) }

// Cancel says that nothing of a job may run any more.
func (x *Executor) Cancel(job string) { x.hear(claim.Canceled{Job: job}) }

// Resume takes a Cancel back.
func (x *Executor) Resume(job string) { x.hear(claim.Resumed{Job: job}) }

func (x *Executor) hear(e claim.Event) { x.tell(func() { x.step(e) }) }
