package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
)

// Defaults of the options, except those declared next to their option.
const (
	// DefaultConcurrency is the ceiling on calls in flight.
	DefaultConcurrency = machine.DefaultConcurrency
	// DefaultAttemptTimeout ends a call that the server accepted and forgot. The vendors'
	// own clients have the same timeout: models that think take minutes.
	DefaultAttemptTimeout = 10 * time.Minute
	// DefaultReadAhead is the number of items that may wait for their first call.
	DefaultReadAhead = coordinator.DefaultReadAhead
	// MaxReadAhead bounds what [WithReadAhead] may ask for: a run makes room for so many
	// results from the start, at some hundred bytes each.
	MaxReadAhead = 1 << 16
	// MaxPriority bounds what [WithPriority] may ask for, and so how long the other
	// runs wait for their turn.
	MaxPriority = machine.MaxPriority

	// MaxWeight bounds the weights of [WithWeights].
	MaxWeight = machine.MaxWeight
)

// An Option changes one thing about a run, or about what several runs share. A run checks
// its options together, before any call. It returns [ErrConfig] for a value out of bounds,
// a nil, two options that contradict each other, or an option that has no meaning where it
// was given. The order of options does not matter, but if one is given twice, the last
// counts.
type Option struct {
	text  string
	scope scope
	apply func(*config)
}

// String shows the option as it would be written.
func (o Option) String() string { return o.text }

// name returns the option without its arguments.
func (o Option) name() string {
	name, _, _ := strings.Cut(o.text, "(")
	return name
}

// A scope says what an option is about, and so where it may be given.
type scope uint8

const (
	anything scope = iota // runs, and what they share
	oneRun                // without meaning for NewShared
	allRuns               // what runs share: next to WithShared it would come too late
)

func option(apply func(*config), format string, args ...any) Option {
	return Option{text: fmt.Sprintf(format, args...), apply: apply}
}

// runOption makes an option about one run.
func runOption(apply func(*config), format string, args ...any) Option {
	return Option{text: fmt.Sprintf(format, args...), scope: oneRun, apply: apply}
}

// requiredOption makes an option about one run whose argument must not be missing.
func requiredOption(name string, missing bool, apply func(*config)) Option {
	return runOption(func(c *config) {
		apply(c)
		c.addFault(notNil(name, missing))
	}, "%s()", name)
}

// sharedOption makes an option about what runs share: lanes, and the coordinator's own.
func sharedOption(apply func(*config), format string, args ...any) Option {
	return Option{text: fmt.Sprintf(format, args...), scope: allRuns, apply: apply}
}

// config holds the settings of a run.
type config struct {
	policy
	machine        machine.Config
	limits         machine.RunConfig
	spills         map[string]time.Duration  // WithSpill, by pool
	weights        map[string]map[string]int // WithWeights, by pool and lane
	sticky         map[string]time.Duration  // WithSticky: the patience, by pool
	homes          map[string]*stickyHomes   // of these pools; nil: there are none
	together       int                       // calls in flight of all runs of a Shared; 0: no bound
	lanes          laneOptions
	attemptTimeout time.Duration
	readAhead      int
	maxFailures    int  // 0: no bound
	filteredFails  bool // an answer that a filter has cut or emptied is a failure
	misfits        misfitBounds

	maxFailureShare float64 // 0: no bound
	inOrder         bool
	clock           clockwork.Clock
	observer        func(Event)
	every           time.Duration
	longWait        time.Duration // 0: no wait is reported
	firstAnswer     time.Duration // 0: the run waits for ever
	outagePatience  time.Duration // 0: likewise
	drain           <-chan struct{}
	summary         *Summary
	shared          *Shared
	control         *Control
	classifier      func(error) Kind
	retryHook       func(Retry)
	gate            func(context.Context)
	calls           func(Call)
	ends            func(End)
	save            func(Memory) error
	hasMemory       bool // WithMemory is given, perhaps with an empty memory
	poolOf, costOf  any  // func(In) string, func(In) Cost
	keyOf           any  // func(In) string
	homeKeyOf       any  // func(In) string
	budget          any  // *Budget[In]
	faults          []error
}

// remembers reports whether items are remembered, from an earlier run or for a later one.
// On a Shared, its options decide that.
func (c *config) remembers() bool {
	return c.save != nil || c.hasMemory || c.shared != nil && c.shared.remembers
}

// configure applies the options to the defaults, in their order. It refuses nothing: it gathers
// the faults, and check returns them.
func configure(opts []Option) *config {
	c := &config{
		policy:         policy{maxAttempts: DefaultMaxAttempts, patience: OverloadPatience},
		machine:        machine.Config{IdleTTL: machine.DefaultIdleTTL, MaxLanes: machine.DefaultMaxLanes},
		limits:         machine.RunConfig{Concurrency: DefaultConcurrency, Priority: 1},
		attemptTimeout: DefaultAttemptTimeout,
		readAhead:      DefaultReadAhead,
		clock:          clockwork.NewRealClock(),
		every:          time.Second,
		longWait:       DefaultLongWait,
		firstAnswer:    DefaultFirstAnswer,
		outagePatience: DefaultOutagePatience,
	}
	for _, o := range opts {
		if o.apply != nil { // the zero Option changes nothing
			o.apply(c)
		}
	}
	if c.shared != nil {
		c.clock = c.shared.clock
		c.faults = append(c.faults, wrongPlaceFaults(opts, allRuns, "WithShared", "NewShared")...)
	}
	c.machine.LongWait = cmp.Or(c.longWait, -1) // to the machine, -1 means none
	c.machine.FirstAnswer = cmp.Or(c.firstAnswer, -1)
	c.machine.OutagePatience = cmp.Or(c.outagePatience, -1)
	c.applySpills()
	c.applyWeights()
	c.addHomePools()
	if c.limits.KeepGoing {
		c.alike, c.keepGoing = 0, true
	}
	lane, err := c.lanes.compose(c.attemptTimeout)
	c.machine.Lane = lane
	c.faults = append(c.faults, err)
	return c
}

// wrongPlaceFaults returns a fault for each option of a scope that may not be given here. where names this place,
// and belongs the right one.
func wrongPlaceFaults(opts []Option, banned scope, where, belongs string) (faults []error) {
	for _, o := range opts {
		if o.apply != nil && o.scope == banned {
			faults = append(faults, fmt.Errorf("%s: %s cannot be used here: give it to %s", where, o.name(), belongs))
		}
	}
	return faults
}

// check returns all faults at once, further ones included.
func (c *config) check(further ...error) error {
	faults := append(further, c.faults...)
	faults = append(faults, c.checkNumbers(), c.checkLanes())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// checkNumbers returns every number that is out of its bounds, under the name of its option.
func (c *config) checkNumbers() error {
	return errors.Join(
		within("WithConcurrency", c.limits.Concurrency, 1, machine.MaxConcurrency),
		within("WithMostConcurrency", cmp.Or(c.limits.MostConcurrency, c.limits.Concurrency), c.limits.Concurrency, machine.MaxConcurrency),
		within("WithMaxAttempts", c.maxAttempts, 1, math.MaxInt),
		within("WithMaxFailures", c.maxFailures, 0, math.MaxInt),
		within("WithMaxFailureShare", c.maxFailureShare, 0, 1),
		within("WithReadAhead", c.readAhead, 1, MaxReadAhead),
		within("WithPriority", c.limits.Priority, 1, MaxPriority),
		within("WithTotal", c.limits.Total, 0, math.MaxInt),
		within("WithAttemptTimeout", c.attemptTimeout, 0, math.MaxInt64),
		within("WithItemTimeout", c.limits.ItemTimeout, 0, math.MaxInt64),
		within("WithProgressEvery", c.every, 1, math.MaxInt64),
		within("WithMaxLanes", c.machine.MaxLanes, 1, math.MaxInt),
		within("WithLongWait", c.longWait, 0, math.MaxInt64),
		within("WithFirstAnswer", c.firstAnswer, 0, math.MaxInt64),
		within("WithOutagePatience", c.outagePatience, 0, math.MaxInt64),
		within("WithAlikeFailures", c.alike, 0, MaxAlikeFailures),
		within("WithIdleLanes", c.machine.IdleTTL, 1, math.MaxInt64),
		inOption("WithBackoff", c.machine.Backoff.Validate()),
	)
}

// checkLanes returns what is wrong with the pools and with the settings of lanes.
func (c *config) checkLanes() error {
	faults := []error{
		machine.RunConfig{Pools: c.limits.Pools}.Validate(), // checkNumbers checks its numbers
		c.machine.Lane.Validate(),
	}
	for _, name := range slices.Sorted(maps.Keys(c.machine.Lanes)) {
		faults = append(faults, inOption(fmt.Sprintf("WithLane(%q)", name), c.machine.Lanes[name].Validate()))
	}
	return errors.Join(faults...)
}

// addFault records what is wrong with an option; nil is nothing.
func (c *config) addFault(err error) {
	if err != nil {
		c.faults = append(c.faults, err)
	}
}

// inOption names the option that brought an error; nil stays nil.
func inOption(option string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", option, err)
}

// within returns an error, under the name of the option, unless n is between least and most.
func within[N int | time.Duration | float64](option string, n, least, most N) error {
	switch {
	case math.IsNaN(float64(n)):
		return fmt.Errorf("%s: %v is not a number", option, n)
	case n < least:
		return fmt.Errorf("%s: %v is less than %v", option, n, least)
	case n > most:
		return fmt.Errorf("%s: %v is more than %v", option, n, most)
	}
	return nil
}

func notNil(what string, missing bool) error {
	if missing {
		return fmt.Errorf("%s: is nil", what)
	}
	return nil
}
