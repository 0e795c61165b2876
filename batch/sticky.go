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
	return present("WithHomeKeyOf", key == nil, func(c *config) { c.homeKeyOf = key })
}

// Homed is an item that has a home key: see [WithHomeKeyOf].
type Homed interface{ HomeKey() string }

// homesOf has the homes of a pool: by lane, the name of the machine's pool for it.
type homesOf struct {
	pools   []string
	seeds   []uint64 // hashes of the lanes' names
	weights []int    // nil: all weigh the same
}

// homeMark divides the name of a pool from that of the home. No name that people write has it.
const homeMark = "\x00"

// stick makes the pools of homes. It follows weigh, as their lanes have the weights of their pool.
func (c *config) stick() {
	for _, name := range slices.Sorted(maps.Keys(c.sticky)) {
		patience := c.sticky[name]
		base := c.limits.Pools[slices.IndexFunc(c.limits.Pools, func(p machine.PoolConfig) bool { return p.Name == name })]
		switch {
		case name == "":
			c.fault(errors.New("WithSticky: the pool has no name"))
			continue
		case patience <= 0:
			c.fault(fmt.Errorf("WithSticky: patience %v is invalid: want more than 0", patience))
			continue
		case len(base.Lanes) < 2 || hasTwice(base.Lanes): // a single lane is every item's home
			continue
		}
		h := &homesOf{weights: base.Weights}
		for k, lane := range base.Lanes {
			h.pools, h.seeds = append(h.pools, name+homeMark+lane), append(h.seeds, hashOf(lane))
			c.limits.Pools = append(c.limits.Pools, homePool(base, k, patience))
		}
		if c.homes == nil {
			c.homes = map[string]*homesOf{}
		}
		c.homes[name] = h
	}
}

func hasTwice(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names)
}

// homePool returns the machine's pool for items whose home is the k-th lane.
func homePool(base machine.PoolConfig, k int, patience time.Duration) machine.PoolConfig {
	p := machine.PoolConfig{Name: base.Name + homeMark + base.Lanes[k], After: patience, Spill: patience}
	p.Lanes = append(append([]string{base.Lanes[k]}, base.Lanes[:k]...), base.Lanes[k+1:]...)
	p.Tiers = append(p.Tiers, 0)
	p.Tiers = append(p.Tiers, slices.Repeat([]int{1}, len(p.Lanes)-1)...)
	if w := base.Weights; w != nil {
		p.Weights = append(append([]int{w[k]}, w[:k]...), w[k+1:]...)
	}
	return p
}

// HomeOf returns which of the lanes is the home of a key in a sticky pool, from 0. Weights is nil if all lanes weigh the
// same. It is for pools that are made one by one: see [Control.DefinePool].
func HomeOf(key string, lanes []string, weights []int) int {
	h := homesOf{weights: weights}
	for _, lane := range lanes {
		h.seeds = append(h.seeds, hashOf(lane))
	}
	return h.home(key)
}

// pool returns the machine's pool for an item of this one: without a key it is this one.
func (h *homesOf) pool(own, key string) string {
	if key == "" {
		return own
	}
	return h.pools[h.home(key)]
}

// home returns the lane with the highest score. A lane of weight 3 has it three times as often as
// one of weight 1.
func (h *homesOf) home(key string) (best int) {
	of, most := hashOf(key), 0.0
	for k, seed := range h.seeds {
		part := (float64(mixed(of^seed)>>12) + 0.5) / (1 << 52) // within 0..1, and neither
		score := -1 / math.Log(part)
		if h.weights != nil {
			score *= float64(h.weights[k])
		}
		if score > most {
			best, most = k, score
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

// mixed spreads each bit over all of them: the last step of splitmix64.
func mixed(x uint64) uint64 {
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

// bringHome has an item wait in the pool of its home. Its result keeps the name of its pool.
func (r *run[In, Out]) bringHome(j *job[In, Out]) {
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
