package claim

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The defaults of a [Config]. What they cost and save is measured by the simulation of this package.
const (
	// DefaultAckWait is for how long the queue believes in a claim of which it hears nothing.
	// A worker that dies holds its chunks up for that long; one that is frozen for longer
	// loses them. It is longer than pauses of a virtual machine are, and short beside the
	// minutes that a chunk takes.
	DefaultAckWait = 30 * time.Second
	// DefaultAskTime is what another worker has to answer in: many ways over a bus, and a
	// processor that is busy.
	DefaultAskTime = 300 * time.Millisecond
	// DefaultGrace is for how long after a reconnect silence is no death: clients find a hub
	// that is back within two seconds or so of each other.
	DefaultGrace = 3 * time.Second
)

const (
	// beats is how many heartbeats there are in AckWait: three may be lost.
	beats = 4
	// AckTime is what an ack may take: one whose answer is lost is never answered.
	AckTime = time.Second
	// ackTries is how often an ack is tried. After that the queue gives the chunk out again,
	// and whoever gets it finds the part.
	ackTries = 10
	// joinTries is how often a join is tried, at first joinPause apart, then twice as long
	// each time, and AckWait at most.
	joinTries = 6
	joinPause = time.Second
	// pause lies between two tries of what failed: to fetch, and to look.
	pause = time.Second
)

// Config is what a [Machine] is made of. Of durations, 0 is the default.
type Config struct {
	// Who is the worker's name: new with each life of its process, and without a slash or a dot,
	// as it is part of the names of journals.
	Who string
	// Concurrency is how many calls the worker may have in flight.
	Concurrency int
	// Ahead is how many items wait in the worker's stream for their next call. Jobs have it in equal parts,
	// whatever else flies, and a new job adds its part at once. 0: no bound but the stream's own.
	Ahead int

	AckWait time.Duration // the queue's: after so long without a heartbeat it gives a chunk out again
	AskTime time.Duration // what another worker has to answer in
	Grace   time.Duration // for so long after a reconnect silence is no death
}

// JobsAtHand is how many jobs a worker works on at once. Each of them has chunks of its own here, so a job whose
// limit is bound holds up no other.
const JobsAtHand = 64

// AtHand is how many chunks of one job a worker claims at once: two, so that one is being read while the last
// calls of the other are in flight; and one for each thousand calls in flight, as
// no chunk has more than a thousand items.
func (c Config) AtHand() int { return 2 + c.Concurrency/1000 }

func (c *Config) complete() error {
	for _, d := range []struct {
		is        *time.Duration
		byDefault time.Duration
	}{{&c.AckWait, DefaultAckWait}, {&c.AskTime, DefaultAskTime}, {&c.Grace, DefaultGrace}} {
		if *d.is < 0 {
			return errors.New("claim: config: a duration is negative")
		}
		if *d.is == 0 {
			*d.is = d.byDefault
		}
	}
	if c.Who == "" || strings.ContainsAny(c.Who, "/.") {
		return fmt.Errorf("claim: config: %q cannot be the name of a worker", c.Who)
	}
	return nil
}

// beatEvery lies between two heartbeats.
func (c *Config) beatEvery() time.Duration { return c.AckWait / beats }

// sureFor is for how long after a heartbeat that was acknowledged a claim calls without a look: by
// then the queue may not have given the chunk to anybody else, however its clock
// differs from ours and however long the heartbeat was on its way.
func (c *Config) sureFor() time.Duration { return c.AckWait * 3 / 4 }
