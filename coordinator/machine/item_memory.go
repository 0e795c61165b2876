package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// This file is about the memory of items that have failed and are not over. A later run begins
// with it, so after a restart an item that always fails differs from one that met an outage.

// MostItemMemories bounds the items in the memory: an item takes some 80 bytes there. Items
// beyond the bound have their attempts anew.
const MostItemMemories = 10_000

// Keyed is a payload that names the key under which its item is remembered; "": it is not.
type Keyed interface{ ItemKey() string }

// An ItemMemory is the memory of an item that has failed and is not over, in a form that
// encoding/json writes and reads.
type ItemMemory struct {
	Failures int `json:"failures"`         // attempts that it has used up, 1 or more
	Doubts   int `json:"doubts,omitempty"` // of these: those after which no other item was answered
}

// Validate finds numbers that no item can have.
func (k ItemMemory) Validate() error {
	if k.Failures < 1 || k.Doubts < 0 || k.Doubts > min(k.Failures, doubtsMost) {
		return fmt.Errorf("machine: item memory: %d failures, %d of them in doubt, cannot be", k.Failures, k.Doubts)
	}
	return nil
}

// SaveItems returns the memory of items that have failed and are not over, by key. These are
// the items that wait or are in flight, items that were let go without a further call, and
// items of an earlier machine that were not offered yet.
func (m *Machine) SaveItems() map[string]ItemMemory {
	all := map[string]ItemMemory{}
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		r := m.runs[id]
		for _, p := range r.opened {
			for it := p.waiting.first; it != nil; it = it.next {
				it.save(all)
			}
			saveAll(all, p.returned.items)
			saveAll(all, p.delayed.items)
			saveAll(all, p.undecidedItems())
		}
		for i := range r.flights.slots {
			if it := r.flights.slots[i].of; it != nil {
				it.save(all)
			}
		}
	}
	for key, k := range m.items {
		if len(all) >= MostItemMemories {
			break
		}
		all[key] = k
	}
	return all
}

func saveAll(into map[string]ItemMemory, items []*Item) {
	for _, it := range items {
		it.save(into)
	}
}

// save remembers the item if it has failed and there is room.
func (it *Item) save(into map[string]ItemMemory) {
	attempts, doubts := it.settled()
	if attempts == 0 || len(into) >= MostItemMemories {
		return
	}
	if of, is := it.Payload.(Keyed); is && of.ItemKey() != "" {
		into[of.ItemKey()] = ItemMemory{Failures: attempts, Doubts: int(doubts)}
	}
}

// recallItem gives an item its remembered failures.
func (m *Machine) recallItem(now time.Time, it *Item) {
	of, is := it.Payload.(Keyed)
	if !is {
		return
	}
	if k, known := m.items[of.ItemKey()]; known {
		delete(m.items, of.ItemKey())
		it.Attempts, it.doubts, it.since = k.Failures, uint8(k.Doubts), now
		it.counted = it.suspect()
	}
}

// leave remembers an item that is let go without a further call.
func (m *Machine) leave(it *Item, v Verdict) {
	if v != EndDrained && v != EndStopped {
		return
	}
	if m.items == nil {
		m.items = map[string]ItemMemory{}
	}
	it.save(m.items)
}
