package coordinator

import (
	"errors"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
)

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
