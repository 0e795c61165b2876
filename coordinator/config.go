package coordinator

import (
	"errors"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
)

// Bounds. Each is a bound on memory or on a wait, and has its reason.
const (
	// DefaultReadAhead is how many items a run may have waiting here. It covers the
	// time that a feed needs to be woken and to read on at the highest rate
	// measured (100,000 items a second for 10 ms), and no more: what waits here is
	// memory.
	DefaultReadAhead = 1024

	// DefaultMailbox lets a burst of workers leave their news without waiting for the
	// loop to come round. A full mailbox only makes them wait for one pass.
	DefaultMailbox = 1024

	// maxBurst is how many messages one pass absorbs before it decides. It bounds
	// how long an early message waits for its answer when news never stops coming.
	maxBurst = 256

	// newsSize is how much news a run may leave unread before later news is
	// dropped and counted. A lane changes phase a few times a minute, so this is
	// minutes of inattention.
	newsSize = 256
)

// ErrClosed is the error of whatever is asked of a coordinator that has ended,
// or is about to.
var ErrClosed = errors.New("coordinator: closed")

// Config is a coordinator's. The zero value works.
type Config struct {
	Machine   machine.Config
	Clock     clockwork.Clock // nil: the real one
	ReadAhead int             // items that may wait, for each open run; 0: DefaultReadAhead
	Mailbox   int             // messages that may wait to be heard, at some 200 bytes each; 0: DefaultMailbox
}

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
