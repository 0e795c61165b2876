package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/jonboulle/clockwork"
)

// A Coordinator is the handle of the goroutine that owns admission. It holds only channels, so
// any goroutine may use it. The goroutine in Run owns everything behind them.
type Coordinator struct {
	cfg     Config
	mailbox chan message
	done    chan struct{}       // closed when Run has returned
	words   chan []machine.Word // holds the words that were not received yet; only the loop sends
}

// New returns a coordinator that does nothing until Run is called.
func New(c Config) *Coordinator {
	c = c.withDefaults()
	return &Coordinator{
		cfg:     c,
		mailbox: make(chan message, c.Mailbox),
		done:    make(chan struct{}),
		words:   make(chan []machine.Word, 1),
	}
}

// Run is the owner. It returns when [Coordinator.Close] was called and the last
// run is over. Call it once, in a goroutine of its own, and wait for it.
func (c *Coordinator) Run() {
	defer close(c.done)
	defer close(c.words)
	l := newLoop(c)
	defer l.timer.Stop()
	l.run()
}

// Close asks Run to return. Open runs are drained, and hear of it by [Session.Closed]: calls in
// flight end, waiting items are released. Close does not wait, and may be called again.
func (c *Coordinator) Close() { c.send(message{question: closeQuestion{}}) }

// Done is closed when Run has returned.
func (c *Coordinator) Done() <-chan struct{} { return c.done }

// Open begins a run and returns its session. The error is that of the config,
// ErrClosed, or ctx's.
func (c *Coordinator) Open(ctx context.Context, cfg machine.RunConfig) (*Session, error) {
	return c.open(ctx, cfg, false)
}

// OpenMuted is Open for a run whose news nobody reads: it has none, and so no room for it.
func (c *Coordinator) OpenMuted(ctx context.Context, cfg machine.RunConfig) (*Session, error) {
	return c.open(ctx, cfg, true)
}

// open asks the owner for a session, and waits for the answer.
func (c *Coordinator) open(ctx context.Context, cfg machine.RunConfig, muted bool) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	reply := make(chan *Session, 1)
	c.send(message{question: openQuestion{config: cfg, muted: muted, reply: reply}})
	select {
	case s := <-reply:
		if s == nil {
			return nil, ErrClosed
		}
		return s, nil
	case <-c.done:
		return nil, ErrClosed
	case <-ctx.Done():
		c.send(message{question: undoOpenQuestion{reply: reply}})
		return nil, context.Cause(ctx)
	}
}

// Status asks for a picture with the n busiest lanes in it. The error is
// ErrClosed or ctx's.
func (c *Coordinator) Status(ctx context.Context, n int) (machine.Status, error) {
	return c.status(ctx, n, 0)
}

// status asks the owner for a picture as one run sees it; run 0 is nobody. The channel for the
// answer has room, so the caller may leave at any time without holding up the owner.
func (c *Coordinator) status(ctx context.Context, n int, run machine.RunID) (machine.Status, error) {
	reply := make(chan machine.Status, 1)
	c.send(message{question: statusQuestion{lanes: n, run: run, reply: reply}})
	select {
	case s := <-reply:
		return s, nil
	case <-c.done:
		return machine.Status{}, ErrClosed
	case <-ctx.Done():
		return machine.Status{}, context.Cause(ctx)
	}
}

// Define sets the config of a lane; see [machine.LaneDefined].
func (c *Coordinator) Define(lane string, cfg machine.LaneConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.sendFact(machine.LaneDefined(lane, cfg))
	return nil
}

// SetLimits sets the limits of a lane from now on; "": of every lane, also of those to come.
func (c *Coordinator) SetLimits(lane string, l limiter.Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	c.sendFact(machine.LimitsChanged(lane, l))
	return nil
}

// SetConcurrency changes the ceiling on the calls in flight of all runs together.
func (c *Coordinator) SetConcurrency(n int) { c.sendFact(machine.ConcurrencyChanged(0, n)) }

// ResetLane lets a lane flow again at once, with nothing held against it.
func (c *Coordinator) ResetLane(lane string) { c.sendFact(machine.LaneReset(lane)) }

// Tell passes a word from outside to the law of a lane; see [machine.Delivered]. It waits at most
// for one pass of the owner.
func (c *Coordinator) Tell(lane string, payload any) { c.sendFact(machine.Delivered(lane, payload)) }

// Overhear reports the end of a call that another coordinator let go; see [machine.Overheard].
func (c *Coordinator) Overhear(lane string, sent time.Time, cost limiter.Cost, o machine.Outcome) {
	c.sendFact(machine.Overheard(lane, sent, cost, o))
}

// Words yields the words of the lanes' laws to the outside (see [limiter.Speaker]). Each value
// has the latest word of each lane that spoke since the last receive. The channel is closed
// when Run has returned; the last words can be received after that. A slow receiver blocks
// nothing.
func (c *Coordinator) Words() <-chan []machine.Word { return c.words }

func (c *Coordinator) sendFact(e machine.Event) { c.send(message{fact: e}) }

// send leaves a message. It waits at most for one pass of the loop, and not at all once the
// loop has returned: nobody hears messages after the end.
func (c *Coordinator) send(m message) {
	select {
	case c.mailbox <- m:
	case <-c.done:
	}
}

// Bounds on memory or on waits; each has its reason.
const (
	// DefaultReadAhead is the number of items that a run may have waiting here. It covers the
	// time in which a feed wakes and reads on at the highest rate measured (100,000 items a
	// second for 10 ms). It is no more, as waiting items take memory.
	DefaultReadAhead = 1024

	// DefaultMailbox lets a burst of workers leave their news without waiting for the loop to
	// come round. A full mailbox only makes them wait for one pass.
	DefaultMailbox = 1024

	// maxBurst is the number of messages that one pass absorbs before it decides. It bounds the
	// wait of an early message for its answer when news never stops coming.
	maxBurst = 256

	// newsSize is the number of unread news of a run beyond which later news is dropped and
	// counted. A lane changes phase a few times a minute, so this is minutes of inattention.
	newsSize = 256
)

// ErrClosed is the error of every question to a coordinator that has ended, or is about to.
var ErrClosed = errors.New("coordinator: closed")

// Config holds the settings of a coordinator. The zero value works.
type Config struct {
	Machine   machine.Config
	Clock     clockwork.Clock // nil: the real one
	ReadAhead int             // items that may wait, for each open run; 0: DefaultReadAhead
	Mailbox   int             // messages that may wait to be heard, at some 200 bytes each; 0: DefaultMailbox
}

// withDefaults puts the defaults in place of zero and negative values.
func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clockwork.NewRealClock()
	}
	if c.ReadAhead <= 0 {
		c.ReadAhead = DefaultReadAhead
	}
	if c.Mailbox <= 0 {
		c.Mailbox = DefaultMailbox
	}
	return c
}
