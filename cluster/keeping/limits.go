package keeping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/coordinator/machine"
)

// setPrefix begins the names of the objects that hold limits set by people. Of two for one limit the higher number
// counts.
const setPrefix = "limits/set-"

// maxSetBytes bounds the bytes that are read of one.
const maxSetBytes = 64 << 10

// SetLimit sets a limit and keeps it in the store. A keeper that misses the message reads it there.
func SetLimit(ctx context.Context, b *bus.Bus, home store.Store, limit string, lane machine.LaneConfig) error {
	text, err := json.Marshal(bus.LimitSet{Name: limit, Lane: lane})
	if err != nil {
		return err
	}
	before, _, err := setLimits(ctx, home, 0)
	if err != nil {
		return err
	}
	if _, err := createNext(ctx, home, setPrefix, 0, text); err != nil {
		return fmt.Errorf("keeping: set limit %s: %w", limit, err)
	}
	for number, l := range before {
		if l.Name == limit {
			_ = home.Delete(ctx, Numbered(setPrefix, number)) // the later one outdoes any that stays
		}
	}
	_ = b.Say(bus.News, bus.LimitNews, bus.Change{Set: &bus.LimitSet{Name: limit, Lane: lane}}) // for the present keeper
	return nil
}

// SetByPeople returns a limit as a person has set it; set is false if nobody has.
func SetByPeople(ctx context.Context, home store.Store, limit string) (lane machine.LaneConfig, set bool, err error) {
	all, _, err := setLimits(ctx, home, 0)
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if l := all[number]; l.Name == limit {
			lane, set = l.Lane, true
		}
	}
	return lane, set, err
}

// setLimits returns the limits that people have set since a number, by number, and the latest number.
func setLimits(ctx context.Context, home store.Store, known uint64) (all map[uint64]bus.LimitSet, latest uint64, err error) {
	all, latest = map[uint64]bus.LimitSet{}, known
	for o, err := range home.List(ctx, setPrefix, Numbered(setPrefix, known)) {
		if err != nil {
			return nil, known, fmt.Errorf("keeping: limits that were set: %w", err)
		}
		number, ok := numberOf(setPrefix, o.Name)
		if !ok {
			continue
		}
		text, err := store.ReadAll(ctx, home, o.Name, maxSetBytes)
		if errors.Is(err, store.ErrMissing) {
			continue // a later one has taken its place
		}
		var l bus.LimitSet
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, known, fmt.Errorf("keeping: limit in %s: %w", o.Name, err)
		}
		all[number], latest = l, max(latest, number)
	}
	return all, latest, nil
}

// readSetLimits tells the keeper the limits that people have set since a number, and returns the latest number. The caller
// reads again later if the store is away.
func (k *Keeper) readSetLimits(ctx context.Context, known uint64) (latest uint64, err error) {
	all, latest, err := setLimits(ctx, k.cfg.Home, known)
	for _, number := range slices.Sorted(maps.Keys(all)) {
		k.tell(ctx, storedOrder(all[number].Name, all[number].Lane))
	}
	return latest, err
}

// storedOrder defines a limit as the store has it, unless the limit is so already.
func storedOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *Keeper) {
		if is, known := k.limits[name]; !known || !reflect.DeepEqual(is, c) {
			k.define(now, name, c)
		}
	}
}

// hearLimits tells the keeper what workers and people say of limits, until ctx ends. It does nothing else: a limit must
// be known before its first permit, and a scheduler may be busy for seconds. Limits that people set stand in the store
// and come before a worker's word. It reads them again each minute, as a message on the bus may be lost.
func (k *Keeper) hearLimits(ctx context.Context) {
	set, err := k.readSetLimits(ctx, 0)
	for ; err != nil && ctx.Err() == nil; set, err = k.readSetLimits(ctx, 0) {
		k.cfg.Say(fmt.Sprintf("no limit is known yet, and the store is asked again: %v", err))
		k.pause(ctx)
	}
	ticker := k.clock.NewTicker(listEvery)
	defer ticker.Stop()
	status, err := bus.Listen[bus.WorkerStatus](k.cfg.Bus, bus.Status, "", newsKept)
	if err != nil {
		return // the connection has ended, and with it this keeper
	}
	defer status.Close()
	news, err := bus.Listen[bus.Change](k.cfg.Bus, bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			set, _ = k.readSetLimits(ctx, set) // a store that is away is asked again
		case said, open := <-status.C:
			if !open {
				return
			}
			for name, lane := range said.Body.Limits { // a worker names the limits under which it has calls
				k.tell(ctx, limitOrder(name, lane))
			}
		case said, open := <-news.C:
			if !open {
				return
			}
			k.hearNews(ctx, said)
		}
	}
}

// pause waits a second before another try.
func (k *Keeper) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-k.clock.After(time.Second):
	}
}

// hearNews obeys a person's message about a limit.
func (k *Keeper) hearNews(ctx context.Context, m bus.Message[bus.Change]) {
	switch n := m.Body; {
	case m.About != bus.LimitNews: // only an admin may send news about limits
	case n.Reset != "":
		k.tell(ctx, resetOrder(n.Reset))
	case n.Set != nil:
		k.tell(ctx, setOrder(n.Set.Name, n.Set.Lane))
	}
}
