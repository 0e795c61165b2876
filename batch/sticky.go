package batch

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// This file is about sticky pools: items with the same beginning go to the same lane, whose server
// may have that beginning in its cache.
//
//	item ─▶ home key ─▶ the lane with the highest score of key and lane ─▶ that home's pool
//	        ""  ─▶ a pool in which the lanes take turns                    home first, then the others
//
// To the machine a home is a pool of two tiers, so it needs no rule of its own. If a lane comes or
// goes, only the keys for which it has the highest score move.

// WithSticky makes a pool of several lanes whose servers keep caches of prompts. Each item has a home
// among the lanes, which its home key decides: see [WithHomeKeyOf]. The other lanes, in turns, take it
// only if the home has stopped, has been ill (cooling or being probed) for at least patience, or
// would let it wait for longer than that. Items without a home key use all lanes in turns. With
// weights, by [WithWeights], a lane is the home of its part of the keys.
func WithSticky(name string, patience time.Duration, lanes ...string) Option {
	base := poolOption(machine.PoolConfig{Name: name, Lanes: lanes}, "WithSticky(%q, %v, %q)", name, patience, lanes)
	return runOption(func(c *config) {
		base.apply(c)
		if c.sticky == nil {
			c.sticky = map[string]time.Duration{}
		}
		c.sticky[name] = patience
	}, "WithSticky(%q, %v, %q)", name, patience, lanes)
}

// WithHomeKeyOf says what items of one home have in common, such as the beginning of their prompts:
// see [WithSticky]. An item whose key is "" has no home. key is called like the function of
// [WithPoolOf], for items of sticky pools.
func WithHomeKeyOf[In any](key func(In) string) Option {
	return requiredOption("WithHomeKeyOf", key == nil, func(c *config) { c.homeKeyOf = key })
}

// Homed is an item that has a home key: see [WithHomeKeyOf].
type Homed interface{ HomeKey() string }

// stickyHomes holds the homes of a sticky pool: by lane, the name of the machine's pool for it.
type stickyHomes struct {
	pools   []string
	seeds   []uint64 // hashes of the lanes' names
	weights []int    // nil: all weigh the same
}

// homeMark divides the name of a pool from that of the home. No name that people write has it.
const homeMark = "\x00"

// addHomePools adds the pools of homes for each sticky pool. It follows applyWeights, as their lanes have the
// weights of their pool.
func (c *config) addHomePools() {
	for _, name := range slices.Sorted(maps.Keys(c.sticky)) {
		patience := c.sticky[name]
		base := c.limits.Pools[slices.IndexFunc(c.limits.Pools, func(p machine.PoolConfig) bool { return p.Name == name })]
		switch {
		case name == "":
			c.addFault(errors.New("WithSticky: the pool has no name"))
			continue
		case patience <= 0:
			c.addFault(fmt.Errorf("WithSticky: patience %v is invalid: want more than 0", patience))
			continue
		case len(base.Lanes) < 2 || hasDuplicates(base.Lanes): // a single lane is every item's home
			continue
		}
		homes := &stickyHomes{weights: base.Weights}
		for k, lane := range base.Lanes {
			homes.pools, homes.seeds = append(homes.pools, name+homeMark+lane), append(homes.seeds, hashOf(lane))
			c.limits.Pools = append(c.limits.Pools, homePool(base, k, patience))
		}
		if c.homes == nil {
			c.homes = map[string]*stickyHomes{}
		}
		c.homes[name] = homes
	}
}

// hasDuplicates reports whether a name appears more than once.
func hasDuplicates(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names)
}

// homePool returns the machine's pool for items whose home is the k-th lane.
func homePool(base machine.PoolConfig, homeIndex int, patience time.Duration) machine.PoolConfig {
	pool := machine.PoolConfig{Name: base.Name + homeMark + base.Lanes[homeIndex], After: patience, Spill: patience}
	pool.Lanes = append(append([]string{base.Lanes[homeIndex]}, base.Lanes[:homeIndex]...), base.Lanes[homeIndex+1:]...)
	pool.Tiers = append(pool.Tiers, 0)
	pool.Tiers = append(pool.Tiers, slices.Repeat([]int{1}, len(pool.Lanes)-1)...)
	if weights := base.Weights; weights != nil {
		pool.Weights = append(append([]int{weights[homeIndex]}, weights[:homeIndex]...), weights[homeIndex+1:]...)
	}
	return pool
}

// HomeOf returns which of the lanes is the home of a key in a sticky pool, from 0. Weights is nil if all lanes weigh the
// same. It is for pools that are made one by one: see [Control.DefinePool].
func HomeOf(key string, lanes []string, weights []int) int {
	h := stickyHomes{weights: weights}
	for _, lane := range lanes {
		h.seeds = append(h.seeds, hashOf(lane))
	}
	return h.home(key)
}

// pool returns the machine's pool for an item of this sticky pool. An item without a key waits in the pool itself,
// whose name is own.
func (h *stickyHomes) pool(own, key string) string {
	if key == "" {
		return own
	}
	return h.pools[h.home(key)]
}

// home returns the lane with the highest score. A lane of weight 3 has it three times as often as
// one of weight 1.
func (h *stickyHomes) home(key string) (best int) {
	keyHash, bestScore := hashOf(key), 0.0
	for k, seed := range h.seeds {
		part := (float64(mixBits(keyHash^seed)>>12) + 0.5) / (1 << 52) // within 0..1, and neither
		score := -1 / math.Log(part)
		if h.weights != nil {
			score *= float64(h.weights[k])
		}
		if score > bestScore {
			best, bestScore = k, score
		}
	}
	return best
}

// hashOf is FNV-1a of 64 bits. It is the same in each run, so a resumed run meets the caches of the
// one before.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mixBits spreads each bit of x over all bits: it is the last step of splitmix64.
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// checkHomes finds sticky pools whose items have no home key.
func (c *config) checkHomes(hasKey bool) error {
	if len(c.sticky) > 0 && !hasKey {
		return errors.New("WithSticky: items have no home key: give them a method HomeKey, or use WithHomeKeyOf")
	}
	return nil
}

// useHomePool makes an item of a sticky pool wait in the pool of its home. Its result keeps the name of the sticky
// pool.
func (r *run[In, Out]) useHomePool(j *job[In, Out]) {
	j.result.Pool = j.Pool
	if of := r.homes[j.Pool]; of != nil {
		j.Pool = of.pool(j.Pool, r.hints.home(j.result.Item))
	}
}

// pool returns the pool in which the item waits, as the caller knows it.
func (j *job[In, Out]) pool() string {
	if p := j.result.Pool; p != "" {
		return p
	}
	return j.Pool
}
