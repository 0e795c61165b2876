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
