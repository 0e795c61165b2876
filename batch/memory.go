package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Memory is what a run has learned that a later one should know. It is for encoding/json
// to write to a file and to read from it.
//
// Lanes are rates, caps, shares of chance and holds, by name: a later run need not learn
// them again, and does not call where it is to wait. Items are those that have failed and
// have not ended, by their [Keyed] key: a later run tells one that always fails from one
// that met an outage.
type Memory struct {
	Lanes map[string]LaneMemory `json:"lanes,omitempty"`
	Items map[string]ItemMemory `json:"items,omitempty"`
}

// empty reports whether nothing is known.
func (m Memory) empty() bool { return len(m.Lanes) == 0 && len(m.Items) == 0 }

// WithMemory begins with what an earlier run has learned. Limits that are told now win
// over those told then, and what is hours old is believed only as far as that is wise.
// A lane that is not in it begins anew. A memory that a later headrace has written is an
// error; with [WithShared] it belongs where that is made, by [NewShared].
// [WithMemorySaver] saves one.
func WithMemory(m Memory) Option {
	return sharedOption(func(c *config) {
		c.hasMemory, c.machine.Memory, c.machine.Items = true, m.Lanes, m.Items
		for _, name := range slices.Sorted(maps.Keys(m.Lanes)) {
			if err := m.Lanes[name].Validate(); err != nil {
				c.faults = append(c.faults, fmt.Errorf("WithMemory: lane %q: %w", name, err))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(m.Items)) {
			if err := m.Items[key].Validate(); err != nil {
				c.faults = append(c.faults, fmt.Errorf("WithMemory: item %q: %w", key, err))
			}
		}
	}, "WithMemory()")
}

// Save is what has been learned until now. The error is ctx's, or that of a
// Shared that was closed.
func (s *Shared) Save(ctx context.Context) (Memory, error) {
	if err := s.made(); err != nil {
		return Memory{}, wrong(err)
	}
	m, err := s.coordinator.Save(ctx)
	return Memory(m), err
}

// Save is what the run has learned until now. It waits for the run to
// begin; the error is ctx's, or that of a run that is over: who wants to know what one
// has learned in the end runs it on a [Shared].
func (c *Control) Save(ctx context.Context) (Memory, error) {
	if err := c.wait(ctx); err != nil {
		return Memory{}, err
	}
	m, err := c.owner.Save(ctx)
	return Memory(m), err
}
