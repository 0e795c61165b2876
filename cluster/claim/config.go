package claim

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The defaults of a [Config]. The simulation in this package measures their costs and savings.
const (
	// DefaultAckWait is the time for which the queue believes in a silent claim. A worker that dies
	// holds its chunks up for that long; one that is frozen for longer loses them. The time is
	// longer than pauses of a virtual machine, and short compared to the minutes that a chunk takes.
	DefaultAckWait = 30 * time.Second
	// DefaultAskTime bounds the answer of another worker: it allows for many ways over a bus, and
	// for a busy processor.
	DefaultAskTime = 300 * time.Millisecond
	// DefaultGrace is the time after a reconnect in which silence does not mean death: clients
	// find a hub that is back within two seconds or so of each other.
	DefaultGrace = 3 * time.Second
)

const (
	// beats is the number of heartbeats in AckWait: three may be lost.
	beats = 4
	// AckTime bounds an ack, because an ack whose answer is lost is never answered.
	AckTime = time.Second
	// ackTries bounds the tries of an ack. After that the queue gives the chunk out again, and
	// the next worker finds the part.
	ackTries = 10
	// joinTries bounds the tries of a join. The first pause between them is joinPause; each later
	// one is twice as long, and AckWait at most.
	joinTries = 6
	joinPause = time.Second
	// pause lies between two tries of a failed fetch or look.
	pause = time.Second
)

// Config holds the settings of a [Machine]. A duration of 0 means the default.
type Config struct {
	// Who is the worker's name. It is new with each life of its process. It has no slash and no dot,
	// because it is part of the names of journals.
	Who string
	// Concurrency bounds the worker's calls in flight.
	Concurrency int
	// Ahead bounds the items that wait in the worker's stream for their next call. Jobs share it equally, whatever
	// else is in flight, and a new job adds its share at once. 0: the stream's own bound alone.
	Ahead int

	AckWait time.Duration // the queue's: after this time without a heartbeat it gives a chunk out again
	AskTime time.Duration // bounds the answer of another worker
	Grace   time.Duration // time after a reconnect in which silence does not mean death
}

// JobsAtHand bounds the jobs of a worker at one time. Each job has chunks of its own here, so a job whose
// limit is exhausted holds up no other.
const JobsAtHand = 64

// AtHand returns how many chunks of one job a worker claims at once. It claims two, to read one while the
// last calls of the other are in flight. It claims one more for each thousand calls in flight, because no
// chunk has more than a thousand items.
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

// beatEvery returns the time between two heartbeats.
func (c *Config) beatEvery() time.Duration { return c.AckWait / beats }

// sureFor returns how long after an acknowledged heartbeat a claim calls without a look. Within that time
// the queue cannot have given the chunk to anybody else. This holds however much its clock differs from
// ours, and however long the heartbeat was under way.
func (c *Config) sureFor() time.Duration { return c.AckWait * 3 / 4 }
