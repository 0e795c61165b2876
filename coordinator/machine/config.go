package machine

import (
	"cmp"
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

	// MaxWeight is the most that a lane of a pool may weigh. It bounds how long the others wait
	// for a turn.
	MaxWeight = 100

	// DefaultIdleTTL is the time for which the machine remembers a lane that nobody uses. It is
	// longer than any hold or ramp. A lane whose limits are not whole by then stays until they
	// are. A stopped lane also stays while a pool of an open run draws on it. A pool is open
	// until one of its lanes is forgotten. The next use after that asks the provider once more.
	DefaultIdleTTL = 15 * time.Minute

	// DefaultMaxLanes is the number of lanes that the machine knows at once. Nobody has as many
	// keys and models, and a lane takes some 3 KB. So the mistake of using a field that differs
	// from item to item as a pool's name shows at some 300 MB.
	DefaultMaxLanes = 100_000

	// MaxDirected is the longest wait a server may ask for. A longer one means a daily quota:
	// the lane stops, and says so. The alternative is a run that stays alive for hours and does
	// nothing.
	MaxDirected = limiter.DefaultMaxDirected

	// ProbeWait is twice the refusal latency assumed before one was seen: a refusal takes a
	// fraction of a second, an answer several seconds.
	ProbeWait = 2 * time.Second

	// MinProbeWait keeps a refusal latency of nearly nothing (loopback, a proxy
	// that answers itself) from letting a probe pass before it could be refused.
	MinProbeWait = 100 * time.Millisecond

	// ModelOpen is the time for which the breaker of a lane under the model law stays open
	// before each probe. A probe every few seconds costs nothing, and full speed within five
	// seconds of a server's return is worth having.
	ModelOpen = 2300 * time.Millisecond

	// DefaultLongWait is the wait of a lane or an item after which the machine reports it.
	// Usual holds take seconds, and those that servers ask for a minute; after five somebody
	// should know.
	DefaultLongWait = 5 * time.Minute

	// DefaultFirstAnswer is the time for which a lane that was never heard may be silent. A
	// server that restarts behind its proxy is back by then. A user who has mistyped an address
	// learns it within the minute.
	DefaultFirstAnswer = 30 * time.Second

	// MostDirected is the longest wait that a provider can mean: the longest quota that comes
	// back by itself is a daily one. A server that asks for more names no wait.
	MostDirected = 24 * time.Hour

	// DefaultPool is the pool, and the lane, of items that name none.
	DefaultPool = "default"
)

// Config holds the settings of a machine. The zero value works.
type Config struct {
	Lane    LaneConfig            // of lanes that nobody defined
	Lanes   map[string]LaneConfig // of lanes that are known from the start
	Memory  map[string]LaneMemory // what an earlier machine knew of lanes; see [LaneRestored]
	Items   map[string]ItemMemory // what it knew of items, by the keys of their payloads; see [Keyed]
	IdleTTL time.Duration         // how long a lane that nobody uses is remembered; 0: DefaultIdleTTL
	// MaxLanes bounds the lanes known at once, idle remembered ones included; 0:
	// DefaultMaxLanes. An item that needs one more is released with EndStopped and
	// ErrTooManyLanes, and its run is stranded. Items that have a lane go on.
	MaxLanes int
	// Concurrency bounds the calls in flight, of all runs together; 0: only each run's own
	// bound holds. Runs take turns for the places.
	Concurrency int
	Backoff     limiter.BackoffConfig // of items whose call failed
	Seed        uint64                // of the jitter; same seed, same waits

	LongWait time.Duration // longer waits are reported; see [LongWait]; 0: DefaultLongWait, less: no wait is

	// FirstAnswer bounds the silence of a lane that was never answered, nor refused, and whose
	// calls all break in one way (see [Outcome].Way). After that time ErrNoAnswer stops the
	// lane, under three conditions: its breaker is open, three tries, one after the other, have
	// broken, and no call is under way. If a new run is the only one to draw on such a lane,
	// the machine tries it anew. 0: DefaultFirstAnswer; less: its breaker waits for ever, as it
	// does on a lane that was heard.
	FirstAnswer time.Duration
	// OutagePatience bounds the time without an answer on a lane that was heard: an
	// [OutageError] then stops it. 0: DefaultOutagePatience; less: for ever.
	OutagePatience time.Duration
	// AnsweredBefore says that an earlier machine's calls were answered on every lane.
	AnsweredBefore bool
}

// LaneConfig holds what is known about one quota, and how its lane recovers. The zero value
// knows nothing and learns.
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

	// Charge describes how the provider draws on the limits: it makes a call's cost from its
	// item's estimate. The zero value takes the estimate as it is.
	Charge limiter.Charge
	// Periods are the periods of the limits in the provider's headers, where they are known.
	// The machine does not read them: they are for the caller, who makes [Outcome].Sightings of
	// headers. But a sighting of a used-up daily limit stops the lane, by a [UsedUpError].
	Periods limiter.Periods
	// Account names the account that the lane draws on. Lanes of one account share its fate: a
	// refusal that concerns the account stops all of them. "": the lane shares none.
	Account string
	// AttemptTimeout bounds one call; 0: the run's own. The caller enforces it. The machine
	// uses it only where Local has no Target; see [limiter.LocalTarget].
	AttemptTimeout time.Duration
	// ItemTimeout bounds the time of items whose first call goes out on this lane; 0: as
	// [RunConfig] says.
	ItemTimeout time.Duration
	// MaxAttempts bounds the failed attempts of an item whose call fails on this lane; 0: the
	// run's own. The caller enforces it; the machine does not look at it.
	MaxAttempts int
}

// PoolConfig says which lanes a pool draws on. Lanes of one tier take turns. A later tier is
// used only once every lane of the tiers before it has stopped, or has been ill for After. A lane
// is ill while it cools or is probed; a lane that is busy is well. The pool goes back as soon as
// a lane of a better tier is well. If that one was ill for After, the later tier takes what it
// leaves until it has climbed.
type PoolConfig struct {
	Name  string
	Lanes []string // at least one
	// Tiers holds the tier of each of Lanes: 0 first, then each as before or one more. nil: all
	// are of one tier.
	Tiers []int
	After time.Duration // 0: the next tier is used at once, and not while a better lane climbs
	// Spill is another way to the next tier: the head of the pool would wait for longer than
	// that for lanes that are well. 0: there is none.
	Spill time.Duration
	// Weights holds a weight for each of Lanes, 1..MaxWeight: of the turns of lanes of one tier
	// that have room, each gets its part. A lane that has none leaves its turns to the others.
	// nil: all weigh the same.
	Weights []int
}

// RunConfig holds the settings of one run.
type RunConfig struct {
	Concurrency int           // calls in flight; 0: DefaultConcurrency
	Pools       []PoolConfig  // a pool that is not here has one lane, of its own name
	ItemTimeout time.Duration // from an item's first call to its end; 0: none
	Priority    int           // items given to it at a turn, where runs want the same lane: 1..MaxPriority; 0: 1
	Total       int           // items that are to come in all; 0: unknown. It is only for reports
	// MostConcurrency bounds what ConcurrencyChanged may set; 0: Concurrency. The driver makes room
	// for as many grants.
	MostConcurrency int
	// KeepGoing has failed probes use up attempts, so that items which always fail come to an
	// end also where nothing tells them from an outage.
	KeepGoing bool
	// Budget bounds the money that the run's calls may cost; 0: nothing does. Spent is the part
	// of it that was spent before, and Doubtful what calls that broke before may cost in
	// addition. Price, which a run with a budget needs, says what to reserve for a call.
	Budget, Spent, Doubtful limiter.Money
	Price                   PriceFunc
}

// A RunID names a run to its machine.
type RunID uint32

// law returns the configuration of the lane's law. A local lane without a target gets the usual one.
func (c LaneConfig) law() limiter.LawConfig {
	target := c.Target
	if c.Local && target == 0 {
		target = limiter.LocalTarget(c.AttemptTimeout)
	}
	return limiter.LawConfig{
		Law: c.Law, Maker: c.Maker, Local: c.Local, Target: target, Limits: c.Limits, Rate: c.Rate, Ramp: c.Ramp, Cooldown: c.Cooldown, Errors: c.Errors,
	}
}

// Validate returns all that is wrong with c and its lanes, before any run uses it.
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

// Validate returns what is wrong with c before any run uses it: impossible values, and settings
// that the chosen law does not use.
func (c LaneConfig) Validate() error {
	if c.Window < 0 {
		return fmt.Errorf("machine: lane: window %d is negative", c.Window)
	}
	if err := c.Limits.Validate(); err != nil {
		return err
	}
	return errors.Join(c.validateLaw(), c.validateParts())
}

// Validate returns the first fault of c and its pools, before any run uses it.
func (c RunConfig) Validate() error {
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		return fmt.Errorf("machine: run: concurrency %d is not in 0..%d", c.Concurrency, MaxConcurrency)
	}
	if most := c.MostConcurrency; most != 0 && (most < c.withDefaults().Concurrency || most > MaxConcurrency) {
		return fmt.Errorf("machine: run: most concurrency %d is not in %d..%d", most, c.withDefaults().Concurrency, MaxConcurrency)
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
	if c.Budget < 0 || c.Spent < 0 || c.Doubtful < 0 {
		return fmt.Errorf("machine: run: budget %v, of which %v are spent and %v in doubt: neither may be negative", c.Budget, c.Spent, c.Doubtful)
	}
	if c.Budget > 0 && c.Price == nil {
		return fmt.Errorf("machine: run: a budget of %v needs a Price", c.Budget)
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

// Validate finds what is wrong with c before a run has it.
func (c PoolConfig) Validate() error { return c.validate() }

// validate refuses a pool without lanes, one that draws on a lane twice, and tiers that are not
// in order.
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
	if c.Weights != nil && len(c.Weights) != len(c.Lanes) {
		return fmt.Errorf("machine: pool %q: weights of %d lanes, but it has %d", c.Name, len(c.Weights), len(c.Lanes))
	}
	for i, n := range c.Weights {
		if n < 1 || n > MaxWeight {
			return fmt.Errorf("machine: pool %q: lane %q has weight %d: want 1..%d", c.Name, c.Lanes[i], n, MaxWeight)
		}
	}
	return c.validateTiers()
}

// validateTiers checks that each lane has a tier, and that the tiers rise from 0 without a gap.
func (c PoolConfig) validateTiers() error {
	if c.After < 0 || c.Spill < 0 {
		return fmt.Errorf("machine: pool %q: after %v and spill %v: want neither negative", c.Name, c.After, c.Spill)
	}
	if c.Tiers != nil && len(c.Tiers) != len(c.Lanes) {
		return fmt.Errorf("machine: pool %q: tiers of %d lanes, but it has %d", c.Name, len(c.Tiers), len(c.Lanes))
	}
	before := 0
	for i, tier := range c.Tiers {
		if tier < before || tier > before+1 || i == 0 && tier > 0 {
			return fmt.Errorf("machine: pool %q: lane %q is of tier %d: want 0 first, then each as before or one more", c.Name, c.Lanes[i], tier)
		}
		before = tier
	}
	return nil
}

// withDefaults puts the default in place of each zero that stands for one.
func (c RunConfig) withDefaults() RunConfig {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	c.MostConcurrency = cmp.Or(c.MostConcurrency, c.Concurrency)
	c.Priority = max(1, c.Priority)
	return c
}

// withDefaults puts the default in place of each zero that stands for one. Negative waits stay:
// they mean that there is no bound.
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

// longestWait returns the longest wait that the server may ask for before the lane stops: the
// user's bound, within MaxDirected.
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
	// ErrWaitTooLong: the server asked for a longer wait than the machine accepts. It is the
	// kind of a [WaitError], which has the details.
	ErrWaitTooLong = errors.New("machine: the server asks for too long a wait")
	// ErrNoAnswer: no call of the lane was ever answered, nor refused, for as long as
	// Config.FirstAnswer says. The same error wraps the cause of the latest failed call.
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

// validateLaw returns an error for fields that the chosen law does not use. Ignoring them would
// mislead: a user who sets a ramp under a law without one would wait for it in vain.
func (c LaneConfig) validateLaw() error {
	if c.Maker != nil && !canBeCompared(c.Maker) {
		return fmt.Errorf("machine: lane: maker: a %T cannot be compared: make it a pointer", c.Maker)
	}
	ofPlain := errors.Join(c.notUsed("ramp", c.Ramp != limiter.RampConfig{}), c.notUsed("cooldown", c.Cooldown != limiter.CooldownConfig{}))
	switch c.Law {
	case limiter.Model:
		rate := c.Rate
		rate.Initial = 0 // a first guess
		return errors.Join(ofPlain, c.notUsed("rate but an initial one", rate != limiter.RateConfig{}))
	case limiter.Plain:
		return c.notUsed("local server", c.Local)
	case limiter.NoLaw:
		return errors.Join(
			ofPlain,
			c.notUsed("rate", c.Rate != limiter.RateConfig{}),
			c.notUsed("limits", c.Limits != limiter.Limits{}),
			c.notUsed("local server", c.Local),
			c.notUsed("target", c.Target != 0),
			c.notUsed("error window", c.Errors != limiter.ErrorWindowConfig{}),
		)
	}
	return fmt.Errorf("machine: lane: law %d: want limiter.Model, Plain and NoLaw", c.Law)
}

// canBeCompared finds a maker that would make the comparison of two configs panic.
func canBeCompared(m limiter.Maker) (can bool) {
	defer func() { can = recover() == nil }()
	same := m
	return m == same
}

func (c LaneConfig) notUsed(field string, given bool) error {
	if !given {
		return nil
	}
	return fmt.Errorf("machine: lane: the %v law uses no %s: leave it out or choose another law", c.Law, field)
}

// validateParts returns an error for values of a lane's parts that are impossible by themselves.
func (c LaneConfig) validateParts() error {
	var target error
	if c.Target < 0 {
		target = fmt.Errorf("machine: lane: target %v is negative", c.Target)
	}
	if c.AttemptTimeout < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: attempt timeout %v is negative", c.AttemptTimeout))
	}
	if c.ItemTimeout < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: item timeout %v is negative", c.ItemTimeout))
	}
	if c.MaxAttempts < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: %d attempts at most is negative", c.MaxAttempts))
	}
	return errors.Join(target, c.Charge.Validate(), c.Periods.Validate(), c.Rate.Validate(), c.Ramp.Validate(), c.Cooldown.Validate(), c.Breaker.Validate(), c.Errors.Validate())
}
