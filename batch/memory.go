package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Memory holds what a run has learned that a later run should know. Write it to a file
// and read it back with encoding/json.
//
// Lanes holds by name what is known of lanes: rates, caps, holds, and the share of calls
// that are refused at any pace. A later run need not learn them again, and makes no calls
// where it must wait. Items holds the items that have failed and have not ended, by their
// [Keyed] key. A later run tells an item that always fails from one that met an outage.
type Memory struct {
	Lanes map[string]LaneMemory `json:"lanes,omitempty"`
	Items map[string]ItemMemory `json:"items,omitempty"`
}

// empty reports whether nothing is known.
func (m Memory) empty() bool { return len(m.Lanes) == 0 && len(m.Items) == 0 }

// WithMemory begins with what an earlier run has learned. Limits given now win over those
// of the earlier run, and knowledge that is hours old counts only in part. A lane that is
// not in m begins anew. A memory written by a later version of headrace is an error. With
// [WithShared], give the memory to [NewShared] instead. [WithMemorySaver] saves a memory.
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

// Save returns what has been learned so far. The error is ctx's, or that of a closed
// Shared.
func (s *Shared) Save(ctx context.Context) (Memory, error) {
	if err := s.made(); err != nil {
		return Memory{}, wrong(err)
	}
	m, err := s.coordinator.Save(ctx)
	return Memory(m), err
}

// Save returns what the run has learned so far. It waits for the run to begin. The error is
// ctx's, or that of a run that is over. To know what a run has learned in the end, run it
// on a [Shared].
func (c *Control) Save(ctx context.Context) (Memory, error) {
	if err := c.wait(ctx); err != nil {
		return Memory{}, err
	}
	m, err := c.owner.Save(ctx)
	return Memory(m), err
}
