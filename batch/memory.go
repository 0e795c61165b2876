package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/headrace/headrace/coordinator/machine"
)

// A Memory is what was learned of lanes, by name: rates, caps, shares of chance, holds.
// It is for encoding/json to write to a file and to read from it, so that a later run
// need not learn again, and does not call where it is to wait. It says nothing of items.
type Memory map[string]machine.LaneMemory

// WithMemory begins with what an earlier run has learned. Limits that are told now win
// over those told then, and what is hours old is believed only as far as that is wise.
// A lane that is not in it begins anew. A memory that a later headrace has written is an
// error; with [WithShared] it belongs where that is made, by [NewShared].
// [WithMemorySaver] saves one.
func WithMemory(m Memory) Option {
	return sharedOption(func(c *config) {
		c.machine.Memory = m
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if err := m[name].Validate(); err != nil {
				c.faults = append(c.faults, fmt.Errorf("WithMemory: lane %q: %w", name, err))
			}
		}
	}, "WithMemory()")
}

// Save is what has been learned of the lanes until now. The error is ctx's, or that of a
// Shared that was closed.
func (s *Shared) Save(ctx context.Context) (Memory, error) {
	if err := s.made(); err != nil {
		return nil, wrong(err)
	}
	return s.coordinator.SaveLanes(ctx)
}

// Save is what the run has learned of its lanes until now. It waits for the run to
// begin; the error is ctx's, or that of a run that is over: who wants to know what one
// has learned in the end runs it on a [Shared].
func (c *Control) Save(ctx context.Context) (Memory, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.owner.SaveLanes(ctx)
}
