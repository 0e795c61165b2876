package executor

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
)

// A Queue gives out chunks.
type Queue interface {
	// Fetch waits for a chunk of a job, seconds and not for ever: false if none came. It ends with ctx. It is called by
	// several goroutines, each for another job.
	Fetch(ctx context.Context, job string) (d Delivery, came bool, err error)
}

// A Delivery is a chunk that was given out. Its methods are called by several goroutines, and end with ctx.
type Delivery interface {
	Body() []byte // the JSON of a job.Chunk
	// Working says that it is being worked on: nil once the queue has heard it. The error is of kind
	// [ErrForgotten] if the queue knows nothing of it.
	Working(ctx context.Context) error
	// Done says, once, that it needs no more work: nil once the queue has heard it, or knows nothing of it.
	Done(ctx context.Context) error
	// Return puts it back, to be given out again after so long and not before.
	Return(ctx context.Context, after time.Duration) error
}

// ErrForgotten is the kind of error of a queue that knows nothing of a delivery: it has lost what it knew.
var ErrForgotten = errors.New("executor: the queue has forgotten it")

// Peers are the other workers, and whoever counts. Its methods are called by several goroutines,
// and end with ctx.
type Peers interface {
	// Holds asks a worker whether it works on a chunk; not answered: it said nothing. How long an
	// answer counts is not for it to say: it waits for longer than claim.Config.AskTime.
	Holds(ctx context.Context, who string, c claim.Chunk) (holds, answered bool, err error)
	// Tell tells it that another claim has the chunk now.
	Tell(ctx context.Context, who string, c claim.Chunk, name claim.Name) error
	// SayDone says that a chunk's part is there. Of one that this worker made its sums are told, the
	// JSON of a parts.Sums; of one that was there they are nil.
	SayDone(c job.Chunk, footer []byte)
}

// A Job is how the chunks of one job are read, called and written. All of it may be called by
// several goroutines at once, but Item by one alone, and Line by one alone.
type Job struct {
	// Read reads a chunk, with keys as of the whole input. A bad line is a *prompts.LineError, and
	// the reading goes on; any other error ends it.
	Read func(context.Context, job.Chunk) iter.Seq2[prompts.Request, error]
	// Again tells which keys of a chunk a later round has, those that failed in the round before.
	// It is not asked about round 0.
	Again func(context.Context, job.Chunk) (func(key string) bool, error)
	// Item is what the stream is given of a request: its Pool is that of the job.
	Item func(prompts.Request) *promptfile.Item
	// Call makes one call.
	Call func(context.Context, *promptfile.Item) (provider.Reply, error)
	// Line is the line of an item that ended; not ended: it was not run.
	Line func(*promptfile.Result) (l journal.Line, ended bool)
	// BadLine is the line of a line that is not asked.
	BadLine func(*prompts.LineError) journal.Line
	// Close says that one who opened the job needs it no more; nil: nobody wants to know.
	Close func()
}

// Config is what an [Executor] is made of. Store, Queue, Peers and Open are needed.
type Config struct {
	Claim     claim.Config
	Connected time.Time // since when the bus is there

	Store store.Store
	Queue Queue
	Peers Peers
	// Open is asked once by each claim that is to be worked on.
	Open func(ctx context.Context, job string) (*Job, error)

	Journal store.JournalConfig
	Clock   clockwork.Clock // nil is the real one
	// Say is told what a person may want to know, in whole sentences. It must not wait; nil:
	// nobody is told.
	Say func(string)

	bounds bounds
}

// bounds are the constants of those names, but where a test wants others.
type bounds struct{ waitingMost, lineMost int }

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
