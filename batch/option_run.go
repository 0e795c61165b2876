package batch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// Options about one run.

// WithConcurrency sets the ceiling on calls in flight: 1..65,536, default 64. For
// [NewShared] it bounds the calls in flight of all its runs together, besides the ceiling
// of each run. There the default is no bound. The runs take turns at these slots, by their
// [WithPriority].
func WithConcurrency(n int) Option {
	return option(func(c *config) { c.limits.Concurrency, c.together = n, n }, "WithConcurrency(%d)", n)
}

// WithMostConcurrency lets [Control.SetConcurrency] raise the ceiling of [WithConcurrency] while the run
// goes on: up to n, at most 65,536. Without it, that may only lower the ceiling and raise it again.
// The run makes room for n calls from the start, at some two hundred bytes each.
func WithMostConcurrency(n int) Option {
	return runOption(func(c *config) { c.limits.MostConcurrency = n }, "WithMostConcurrency(%d)", n)
}

// WithPool makes a pool of several lanes, which take turns. The Pool method of items, or
// [WithPoolOf], says which items are in it. [LaneFrom] returns the lane of a call.
func WithPool(name string, lanes ...string) Option {
	return poolOption(machine.PoolConfig{Name: name, Lanes: lanes}, "WithPool(%q, %q)", name, lanes)
}

// WithFallback makes a pool of several lanes. A later lane is used only while those before
// it are cooling, being probed or stopped.
func WithFallback(name string, lanes ...string) Option {
	c := machine.PoolConfig{Name: name, Lanes: lanes}
	for i := range lanes {
		c.Tiers = append(c.Tiers, i)
	}
	return poolOption(c, "WithFallback(%q, %q)", name, lanes)
}

// WithPrefer makes a pool of several tiers of lanes. The lanes of a tier take turns. A later
// tier is used only once each lane of the tiers before it has stopped, or has been ill (cooling
// or being probed) for at least after; a lane that is busy is not ill. The pool goes back as
// soon as a lane of a better tier is well. If that lane was ill for at least after, the later tier
// takes what it leaves until it has climbed back. With an after of 0 the next tier is used at once,
// and not while a better lane climbs: [WithFallback] is that, with one lane in each tier.
func WithPrefer(name string, after time.Duration, tiers ...[]string) Option {
	c := machine.PoolConfig{Name: name, After: after}
	for tier, lanes := range tiers {
		for _, lane := range lanes {
			c.Lanes, c.Tiers = append(c.Lanes, lane), append(c.Tiers, tier)
		}
	}
	return poolOption(c, "WithPrefer(%q, %v, %q)", name, after, tiers)
}

// WithSpill gives a pool of [WithPrefer] or [WithFallback] another way to its next tier: the
// item at its head would wait for longer than d for lanes that are well. It is for callers who
// would rather pay than wait. Without it the pool waits for a lane that is busy.
func WithSpill(pool string, d time.Duration) Option {
	return runOption(func(c *config) {
		if c.spills == nil {
			c.spills = map[string]time.Duration{}
		}
		c.spills[pool] = d
	}, "WithSpill(%q, %v)", pool, d)
}

// applySpills puts the waits of WithSpill into their pools.
func (c *config) applySpills() {
	for _, name := range slices.Sorted(maps.Keys(c.spills)) {
		d := c.spills[name]
		at := slices.IndexFunc(c.limits.Pools, func(p machine.PoolConfig) bool { return p.Name == name && p.Tiers != nil })
		switch {
		case d <= 0:
			c.addFault(fmt.Errorf("WithSpill: wait %v is invalid: want more than 0", d))
		case at < 0:
			c.addFault(fmt.Errorf("WithSpill: pool %q has no tiers: make it with WithPrefer or WithFallback", name))
		default:
			c.limits.Pools[at].Spill = d
		}
	}
}

// WithWeights has the lanes of a pool, made by another option, take turns by weights of
// 1..[MaxWeight]. With weights of 3 and 1 the first lane takes three items of four, while both
// have room. A lane that has none leaves its turns to the others. In a pool with tiers the
// weights of a tier's lanes count. A lane that is not in the map weighs 1.
func WithWeights(pool string, weights map[string]int) Option {
	weights = maps.Clone(weights)
	return runOption(func(c *config) {
		if c.weights == nil {
			c.weights = map[string]map[string]int{}
		}
		c.weights[pool] = weights
	}, "WithWeights(%q, %v)", pool, weights)
}

// applyWeights puts the weights of WithWeights into their pools.
func (c *config) applyWeights() {
	for _, name := range slices.Sorted(maps.Keys(c.weights)) {
		at := slices.IndexFunc(c.limits.Pools, func(p machine.PoolConfig) bool { return p.Name == name })
		if at < 0 {
			c.addFault(fmt.Errorf("WithWeights: there is no pool %q: make it with WithPool, WithPrefer or WithFallback", name))
			continue
		}
		p := &c.limits.Pools[at]
		p.Weights = slices.Repeat([]int{1}, len(p.Lanes))
		for _, lane := range slices.Sorted(maps.Keys(c.weights[name])) {
			k, n := slices.Index(p.Lanes, laneName(lane)), c.weights[name][lane]
			switch {
			case k < 0:
				c.addFault(fmt.Errorf("WithWeights: lane %q is not of pool %q, which has %q", lane, name, p.Lanes))
			case n < 1 || n > MaxWeight:
				c.addFault(fmt.Errorf("WithWeights: lane %q has weight %d: want 1..%d", lane, n, MaxWeight))
			default:
				p.Weights[k] = n
			}
		}
	}
}

// poolOption returns an option that adds the pool p. It keeps the pools sorted by name, whatever the order of the
// options.
func poolOption(p machine.PoolConfig, format string, text ...any) Option {
	p.Lanes = slices.Clone(p.Lanes)
	for i, lane := range p.Lanes {
		p.Lanes[i] = laneName(lane)
	}
	return runOption(func(c *config) {
		at, _ := slices.BinarySearchFunc(c.limits.Pools, p, func(a, b machine.PoolConfig) int { return cmp.Compare(a.Name, b.Name) })
		c.limits.Pools = slices.Insert(c.limits.Pools, at, p)
	}, format, text...)
}

// WithPoolOf says in which pool an item waits. A pool that no option describes has one lane
// of its own name. The goroutine that reads the input calls pool once for each item. A run
// ends once each lane that it knows has stopped: [WithPool] names the lanes of items that
// were not read yet.
func WithPoolOf[In any](pool func(In) string) Option {
	return requiredOption("WithPoolOf", pool == nil, func(c *config) { c.poolOf = pool })
}

// WithCostOf says what an item's call is expected to draw. On lanes that have a [Charge],
// the cost is an estimate. Without WithCostOf a call costs one request, and tokens are
// counted once the usage is known. cost is called like the function of [WithPoolOf].
func WithCostOf[In any](cost func(In) Cost) Option {
	return requiredOption("WithCostOf", cost == nil, func(c *config) { c.costOf = cost })
}

// WithKeyOf sets the key under which a run remembers an item that has failed and has not
// ended; "" means that the item is not remembered. If two items share a key, either may
// count. key is called like the function of [WithPoolOf], where [WithMemory] or
// [WithMemorySaver] is given.
func WithKeyOf[In any](key func(In) string) Option {
	return requiredOption("WithKeyOf", key == nil, func(c *config) { c.keyOf = key })
}

// WithMaxAttempts bounds how many failed attempts an item may have: at least 1, default 5.
// Refusals (429, 503, 529) do not count; [MaxRefusals] and [OverloadPatience] bound those.
// On a lane whose [LaneConfig] has a MaxAttempts, that is the bound.
func WithMaxAttempts(n int) Option {
	return runOption(func(c *config) { c.maxAttempts = n }, "WithMaxAttempts(%d)", n)
}

// MaxAlikeFailures bounds what [WithAlikeFailures] may ask for.
const MaxAlikeFailures = math.MaxUint8

// WithAlikeFailures stops a lane, by [ErrAlike], when n different items have failed alike
// (in kind, status, code and parameter) and no item was ever answered on it. The mistake is
// then in all of them, and the run makes no calls for the rest. A shorter input stops the
// lane, too, if all its items have failed alike. The items are left to a later run. If each
// item is offered only once the one before has ended, the earlier items have already
// failed. Default 0: never, each item fails by itself.
//
// The option counts requests that the provider refuses for good, with a status of 400 or
// more, and items whose calls broke until no attempt was left. Content that is filtered or
// too long is the item's own failure, and so is a [Permanent] error.
//
// A refused key or a missing model stops a lane without this: see the table at [Run].
func WithAlikeFailures(n int) Option {
	return runOption(func(c *config) { c.alike = n }, "WithAlikeFailures(%d)", n)
}

// WithKeepGoing ends every item, also where a run cannot tell whether the items or the
// server are to blame. Probes that a breaker sends, and that fail, then use up attempts.
// Nothing stops because items fail alike, whatever WithAlikeFailures says: a 403 fails its
// item. It is for inputs known to hold many items that always fail; in an outage it fails
// good ones, too. A key that is refused by a 401, a missing model, and a server that never
// answered stop a lane all the same.
func WithKeepGoing() Option {
	return runOption(func(c *config) { c.limits.KeepGoing = true }, "WithKeepGoing()")
}

// WithMaxFailures drains the run once n items have failed for good. Nothing more is
// started. Calls in flight finish, so a few more items may fail. Waiting items are given
// back as not run. The run's error is [ErrTooManyFailures], also if nothing was left to
// run. Default 0: no bound.
func WithMaxFailures(n int) Option {
	return runOption(func(c *config) { c.maxFailures = n }, "WithMaxFailures(%d)", n)
}

// WithMaxFailureShare drains the run once more than this share of the ended items has
// failed for good, after the first 100. It drains as [WithMaxFailures] does, with the same
// error. The share is at most 1; 0, the default, is no bound. It is judged as the caller
// takes results.
func WithMaxFailureShare(share float64) Option {
	return runOption(func(c *config) { c.maxFailureShare = share }, "WithMaxFailureShare(%v)", share)
}

// WithFilteredFailing makes an item fail, with kind [Refused], if a content filter has cut
// its answer short or emptied it. Without this option such an answer is a result like any
// other, counted in [Summary].Filtered; its Finish says why it ended.
func WithFilteredFailing() Option {
	return runOption(func(c *config) { c.filteredFails = true }, "WithFilteredFailing()")
}

// WithAttemptTimeout bounds one call; time spent waiting for it to leave does
// not count. Default 10 minutes; 0 is no bound. On a lane whose [LaneConfig] has an
// AttemptTimeout, that is the bound. A function that takes its answer as a stream stops this
// clock by [provider.Recorder.AnswerBegins]; the time of the item goes on.
func WithAttemptTimeout(d time.Duration) Option {
	return runOption(func(c *config) { c.attemptTimeout = d }, "WithAttemptTimeout(%v)", d)
}

// WithItemTimeout bounds an item from its first call to its end, waits included: a call
// still running then is cut off. Default 0: no bound. If the first call of an item goes out
// on a lane whose [LaneConfig] has an ItemTimeout, that is the bound.
func WithItemTimeout(d time.Duration) Option {
	return runOption(func(c *config) { c.limits.ItemTimeout = d }, "WithItemTimeout(%v)", d)
}

// WithReadAhead bounds how many items may have been taken from the input beyond those in
// flight: 1..[MaxReadAhead], default 1,024. For [NewShared] it bounds how many items of
// each run may wait in the coordinator that they share.
func WithReadAhead(n int) Option {
	return option(func(c *config) { c.readAhead = n }, "WithReadAhead(%d)", n)
}

// WithInputOrder makes Stream give results in the order of the input. A result that is
// ahead of its turn is kept; the read-ahead bounds how many are. Run always returns results
// in that order.
func WithInputOrder() Option {
	return runOption(func(c *config) { c.inOrder = true }, "WithInputOrder()")
}

// WithDrain drains the run when ch is closed. Calls in flight finish, and waiting items are
// given back as not run. The run's error is [ErrDrained] if anything was left.
func WithDrain(ch <-chan struct{}) Option {
	return requiredOption("WithDrain", ch == nil, func(c *config) { c.drain = ch })
}

// WithSummary writes the run's summary to s, before Run returns or the range over Stream
// ends. A run that cannot begin also writes one; with [ErrConfig] it is the zero Summary.
func WithSummary(s *Summary) Option {
	return requiredOption("WithSummary", s == nil, func(c *config) { c.summary = s })
}

// WithPriority sets the run's share where runs on one [Shared] want the same lane:
// 1..[MaxPriority], default 1. A run of priority 3 makes three calls for each call of a run
// of priority 1. It is a share and not a rank: nobody starves, and the others use what a
// run leaves. A run that is alone has everything, whatever its priority.
func WithPriority(n int) Option {
	return runOption(func(c *config) { c.limits.Priority = n }, "WithPriority(%d)", n)
}

// WithTotal gives the number of items in the input, where it is known, for progress
// displays. [Status].Run and the [Summary] show it. The run does not depend on it: neither
// more items nor fewer are an error. Default 0: unknown.
func WithTotal(n int) Option {
	return runOption(func(c *config) { c.limits.Total = n }, "WithTotal(%d)", n)
}
