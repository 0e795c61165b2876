package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Bounds and defaults. Each may be changed where a config has a field for it.
const (
	// DefaultConcurrency is a run's ceiling on calls in flight. 64 saturate the
	// usual first tiers of hosted APIs (a few hundred calls a minute of a few
	// seconds each) without asking for more sockets than a laptop gives.
	DefaultConcurrency = 64

	// MaxConcurrency keeps a slip of the keyboard from starting a million workers.
	MaxConcurrency = 1 << 16

	// MaxPriority is the most items that a run may be given at a turn. It bounds how
	// long the others wait for theirs.
	MaxPriority = 100

	// DefaultIdleTTL is how long a lane that nobody uses is remembered: longer
	// than any hold or ramp. One whose limits are not whole by then is kept until they
	// are. A lane that has stopped is remembered besides while a pool of an open run draws on it; a
	// pool is open until a lane of it is forgotten. Who uses the lane after that asks its
	// provider once more.
	DefaultIdleTTL = 15 * time.Minute

	// DefaultMaxLanes is how many lanes are known at once. Nobody has as many keys and
	// models, and a lane takes some 3 KB: where a field that differs from item to item is
	// taken for a pool's name by mistake, that is found out at some 300 MB.
	DefaultMaxLanes = 100_000

	// MaxDirected is the longest wait a server may ask for. One that asks for more
	// means a daily quota; the lane stops, and says so, instead of
	// keeping a run alive for hours that does nothing.
	MaxDirected = limiter.DefaultMaxDirected

	// ProbeWait is twice the refusal latency assumed before one was seen: a
	// refusal takes a fraction of a second, an answer several.
	ProbeWait = 2 * time.Second

	// MinProbeWait keeps a refusal latency of nearly nothing (loopback, a proxy
	// that answers itself) from letting a probe pass before it could be refused.
	MinProbeWait = 100 * time.Millisecond

	// ModelOpen is how long the breaker of a lane that follows the model stays open
	// at a time: a probe every few seconds costs nothing, and full speed within five
	// seconds of a server's return is worth having.
	ModelOpen = 2300 * time.Millisecond

	// DefaultLongWait is how long a lane or an item may wait before that is said. Usual
	// holds are seconds, and those that servers ask for a minute; after five somebody
	// should know.
	DefaultLongWait = 5 * time.Minute

	// DefaultFirstAnswer is how long a lane that was never heard may be silent: a server
	// that restarts behind its proxy is back by then, and who has mistyped an address
	// learns it within the minute.
	DefaultFirstAnswer = 30 * time.Second

	// MostDirected is the longest wait that a provider can mean: the longest quota that
	// comes back by itself is one by the day. What asks for more names no wait.
	MostDirected = 24 * time.Hour

	// DefaultPool is the pool, and the lane, of items that name none.
	DefaultPool = "default"
)

// Config is a machine's. The zero value works.
type Config struct {
	Lane    LaneConfig            // of lanes that nobody defined
	Lanes   map[string]LaneConfig // of lanes that are known from the start
	Memory  map[string]LaneMemory // what an earlier machine knew of lanes; see [LaneRestored]
	Items   map[string]ItemMemory // what it knew of items, by the keys of their payloads; see [Keyed]
	IdleTTL time.Duration         // how long a lane that nobody uses is remembered; 0: DefaultIdleTTL
	// MaxLanes is how many lanes are known at once, those that idle and are remembered
	// included; 0: DefaultMaxLanes. An item that needs one more is released with
	// EndStopped and ErrTooManyLanes, and its run is stranded: what has a lane goes on.
	MaxLanes int
	// Concurrency is how many calls may be in flight, of all runs together; 0: as many as
	// each run's own allows. Runs take turns for the places.
	Concurrency int
	Backoff     limiter.BackoffConfig // of items whose call failed
	Seed        uint64                // of the jitter; same seed, same waits

	LongWait time.Duration // a longer one is said; see [LongWait]; 0: DefaultLongWait, less: none is

	// FirstAnswer is how long the calls of a lane that was never answered, nor refused, may
	// all break in one way (see [Outcome].Way): it is then stopped by ErrNoAnswer, once its
	// breaker is open, three tries, one after the other, have broken, and none is under
	// way. A run that is the only one to draw on such a lane has it tried anew. 0:
	// DefaultFirstAnswer; less: its breaker waits for ever, as it does on a lane that was
	// heard.
	FirstAnswer time.Duration
	// OutagePatience is how long nothing may be answered on a lane that was heard: it is then
	// stopped by an [OutageError]. 0: DefaultOutagePatience; less: for ever.
	OutagePatience time.Duration
	// AnsweredBefore says that an earlier machine's calls were answered on every lane.
	AnsweredBefore bool
}

// LaneConfig is one quota's: what is known about it, and how it recovers.
// The zero value knows nothing and learns.
//
// A field of one law alone must be zero under the other: [LaneConfig.Validate] says so.
type LaneConfig struct {
	Limits   limiter.Limits            // told by the user; zero fields are not limited
	Window   int                       // calls in flight; 0: only the run's concurrency
	Law      limiter.LawName           // by which calls are let in; zero: limiter.Model, which follows the provider's own limits; limiter.NoLaw limits nothing but Window
	Maker    limiter.Maker             // who makes its law instead, of the fields below what it likes; nil: it is the one that Law names. Must be comparable. If it fails, or its law does, the lane stops by a LawError
	Local    bool                      // of the model law: a server of one's own, which queues; if it refuses, it is judged like any other
	Target   time.Duration             // latency: the mean stays within limiter.MeanTolerance of it; 0: it may be any. Of Local: what the 90th percentile stays under; 0: limiter.LocalTarget of AttemptTimeout
	Rate     limiter.RateConfig        // of the plain law; the model law takes Initial, as a first guess
	Ramp     limiter.RampConfig        // of the plain law; zero: limiter.RampShare of the known rate to all of it in limiter.RampTime; else nothing that was learned limits outside of it
	Cooldown limiter.CooldownConfig    // of the plain law; a wait over its MaxDirected stops the lane
	Breaker  limiter.BreakerConfig     // zero under the model law: as usual, but open for ModelOpen at a time
	Errors   limiter.ErrorWindowConfig // when failures slow the lane down

	// Charge is how its provider draws on the limits: it makes a call's cost of what its
	// item tells. The zero value takes that as it is.
	Charge limiter.Charge
	// Periods are what the limits in its headers are for, where that is known. The machine
	// does not read them: whoever makes [Outcome].Sightings of headers does. But a sighting
	// of a limit by the day of which nothing is left stops the lane, by a [UsedUpError].
	Periods limiter.Periods
	// AttemptTimeout bounds one call; 0: as the run says. The machine does not look at it
	// but where Local has no Target: that is half of it then. Whoever makes the calls does.
	AttemptTimeout time.Duration
	// ItemTimeout is that of the items whose first call goes out on it; 0: as [RunConfig] says.
	ItemTimeout time.Duration
	// MaxAttempts bounds how many failed attempts an item may have whose call fails on it; 0: as the run
	// says. The machine does not look at it: whoever makes the calls does.
	MaxAttempts int
}

// PoolConfig says which lanes a pool draws on.
type PoolConfig struct {
	Name  string
	Lanes []string // at least one
	// Fallback makes the order of Lanes matter: a later lane is used only while
	// those before it are cooling, being probed or stopped. Without it the lanes
	// take turns.
	Fallback bool
}

// RunConfig is one run's.
type RunConfig struct {
	Concurrency int           // calls in flight; 0: DefaultConcurrency
	Pools       []PoolConfig  // a pool that is not here has one lane, of its own name
	ItemTimeout time.Duration // from an item's first call to its end; 0: none
	Priority    int           // items given to it at a turn, where runs want the same lane: 1..MaxPriority; 0: 1
	Total       int           // items that are to come in all; 0: unknown. It is only told again
	// KeepGoing has failed probes use up attempts, so that items which always fail come to an
	// end also where they cannot be told from an outage.
	KeepGoing bool
}

// A RunID names a run to its machine.
type RunID uint32

func (c LaneConfig) law() limiter.LawConfig {
	target := c.Target
	if c.Local && target == 0 {
		target = limiter.LocalTarget(c.AttemptTimeout)
	}
	return limiter.LawConfig{
		Law: c.Law, Maker: c.Maker, Local: c.Local, Target: target, Limits: c.Limits, Rate: c.Rate, Ramp: c.Ramp, Cooldown: c.Cooldown, Errors: c.Errors,
	}
}

// Validate finds what is wrong with c, its lanes included, before anything is run with
// it.
func (c Config) Validate() error {
	faults := []error{c.Lane.Validate(), c.Backoff.Validate()}
	if c.IdleTTL < 0 {
		faults = append(faults, fmt.Errorf("machine: idle time to live: %v is negative", c.IdleTTL))
	}
	if c.MaxLanes < 0 {
		faults = append(faults, fmt.Errorf("machine: most lanes: %d is negative", c.MaxLanes))
	}
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		faults = append(faults, fmt.Errorf("machine: concurrency: %d is not in 0..%d", c.Concurrency, MaxConcurrency))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Lanes)) {
		if err := c.Lanes[name].Validate(); err != nil {
			faults = append(faults, fmt.Errorf("machine: lane %q: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// Validate finds what is wrong with c before anything is run with it: what cannot be
// meant, and what the chosen law does not use.
func (c LaneConfig) Validate() error {
	if c.Window < 0 {
		return fmt.Errorf("machine: lane: window %d is negative", c.Window)
	}
	if err := c.Limits.Validate(); err != nil {
		return err
	}
	return errors.Join(c.validateLaw(), c.validateParts())
}

// Validate finds what is wrong with c before anything is run with it.
func (c RunConfig) Validate() error {
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		return fmt.Errorf("machine: run: concurrency %d is not in 0..%d", c.Concurrency, MaxConcurrency)
	}
	if c.ItemTimeout < 0 {
		return fmt.Errorf("machine: run: item timeout %v is negative", c.ItemTimeout)
	}
	if c.Priority < 0 || c.Priority > MaxPriority {
		return fmt.Errorf("machine: run: priority %d is not in 0..%d", c.Priority, MaxPriority)
	}
	if c.Total < 0 {
		return fmt.Errorf("machine: run: total %d is negative", c.Total)
	}
	names := map[string]bool{}
	for _, p := range c.Pools {
		if names[p.Name] {
			return fmt.Errorf("machine: pool %q: there are two of that name", p.Name)
		}
		names[p.Name] = true
		if err := p.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c PoolConfig) validate() error {
	if len(c.Lanes) == 0 {
		return fmt.Errorf("machine: pool %q: no lane", c.Name)
	}
	lanes := map[string]bool{}
	for _, l := range c.Lanes {
		if lanes[l] {
			return fmt.Errorf("machine: pool %q: lane %q is there twice", c.Name, l)
		}
		lanes[l] = true
	}
	return nil
}

func (c RunConfig) withDefaults() RunConfig {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	c.Priority = max(1, c.Priority)
	return c
}

func (c Config) withDefaults() Config {
	if c.IdleTTL == 0 {
		c.IdleTTL = DefaultIdleTTL
	}
	if c.MaxLanes == 0 {
		c.MaxLanes = DefaultMaxLanes
	}
	if c.LongWait == 0 {
		c.LongWait = DefaultLongWait
	}
	if c.FirstAnswer == 0 {
		c.FirstAnswer = DefaultFirstAnswer
	}
	if c.OutagePatience == 0 {
		c.OutagePatience = DefaultOutagePatience
	}
	return c
}

// longestWait is how long a wait the server may ask for before the lane stops: what the
// user says, within MaxDirected.
func (c *LaneConfig) longestWait() time.Duration {
	if most := c.Cooldown.MaxDirected; most > 0 {
		return min(most, MaxDirected)
	}
	return MaxDirected
}

// Errors that say why items are released or a lane has stopped.
var (
	// ErrLaneStopped: the server refused the lane for good and did not say why.
	ErrLaneStopped = errors.New("machine: lane stopped")
	// ErrWaitTooLong: the server asked for a wait longer than is waited. It is the kind of
	// a [WaitError], which has the details.
	ErrWaitTooLong = errors.New("machine: the server asks for too long a wait")
	// ErrNoAnswer: no call of the lane was ever answered, nor refused, for as long as
	// Config.FirstAnswer says. What the latest of them broke of is in the same error.
	ErrNoAnswer = errors.New("machine: no call was ever answered")
	// ErrOutage: nothing was answered for as long as Config.OutagePatience says. It is the
	// kind of an [OutageError], which has the details.
	ErrOutage = errors.New("machine: nothing was answered")
	// ErrAlike: different items failed alike, and none was ever answered. It is the kind of an
	// [AlikeError], which has the details.
	ErrAlike = errors.New("machine: all failed alike")
	// ErrTooManyLanes: an item needs a lane beyond Config.MaxLanes. The text says which.
	ErrTooManyLanes = errors.New("machine: too many lanes")
)
