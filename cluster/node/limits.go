package node

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
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/coordinator/machine"
)

// setPrefix begins the names of the objects that hold what people say of limits: of two about one limit the higher number counts.
const setPrefix = "limits/set-"

// setMost is the most bytes that are read of one.
const setMost = 64 << 10

// SetLimit says what a limit is like from now on, and keeps it in the store: a keeper that does not hear it reads it there.
func (n *Node) SetLimit(ctx context.Context, limit string, lane machine.LaneConfig) error {
	if n.bus.Role() != bus.AdminRole { // a keeper would read it in the store, where no role is asked for
		return adminOnly()
	}
	text, err := json.Marshal(limitSet{limit, lane})
	if err != nil {
		return err
	}
	before, _, err := n.setLimits(ctx, 0)
	if err != nil {
		return err
	}
	if err := n.keepSet(ctx, text); err != nil {
		return fmt.Errorf("node: set limit %s: %w", limit, err)
	}
	for number, l := range before {
		if l.Name == limit {
			_ = n.home.Delete(ctx, numbered(setPrefix, number)) // one that stays is outdone by the later
		}
	}
	_ = n.bus.Say(bus.News, bus.LimitNews, newsWord{Set: &limitSet{limit, lane}}) // for the keeper that there is
	return nil
}

// keepSet creates the object with the next number.
func (n *Node) keepSet(ctx context.Context, text []byte) error {
	latest, err := latestNumber(ctx, n.home, setPrefix, 0)
	for range mintTries {
		if err != nil {
			return err
		}
		latest++
		err = store.CreateBytes(ctx, n.home, numbered(setPrefix, latest), text)
		if !errors.Is(err, store.ErrExists) {
			break
		}
		err = nil
	}
	return err
}

// setLimits are what people have said of limits since a number, by number, and the latest number.
func (n *Node) setLimits(ctx context.Context, known uint64) (all map[uint64]limitSet, latest uint64, err error) {
	all, latest = map[uint64]limitSet{}, known
	for o, err := range n.home.List(ctx, setPrefix, numbered(setPrefix, known)) {
		if err != nil {
			return nil, known, fmt.Errorf("node: limits that were set: %w", err)
		}
		number, ok := numberOf(setPrefix, o.Name)
		if !ok {
			continue
		}
		text, err := store.ReadAll(ctx, n.home, o.Name, setMost)
		if errors.Is(err, store.ErrMissing) {
			continue // a later one has taken its place
		}
		var l limitSet
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, known, fmt.Errorf("node: limit in %s: %w", o.Name, err)
		}
		all[number], latest = l, max(latest, number)
	}
	return all, latest, nil
}

// takeSet tells the keeper what people have said of limits since a number, and gives the latest. A store that is away is read
// again later.
func (n *Node) takeSet(ctx context.Context, k *keeping, known uint64) (latest uint64, err error) {
	all, latest, err := n.setLimits(ctx, known)
	for _, number := range slices.Sorted(maps.Keys(all)) {
		k.tell(ctx, keptOrder(all[number].Name, all[number].Lane))
	}
	return latest, err
}

// keptOrder says what a limit is like by the store. A limit that is like that already goes on as it is.
func keptOrder(name string, c machine.LaneConfig) order {
	return func(now time.Time, k *keeping) {
		if is, known := k.limits[name]; !known || !reflect.DeepEqual(is, c) {
			k.define(now, name, c)
		}
	}
}

// hearLimits tells the keeper what workers and people say of limits, until ctx ends. It does nothing else: no permit is
// given for a limit before it is known, and a foreman may be busy for seconds. What people have said stands in the store and
// comes before a worker's word; it is read again each minute, as a word on the bus may be lost.
func (n *Node) hearLimits(ctx context.Context, k *keeping) {
	set, err := n.takeSet(ctx, k, 0)
	for ; err != nil && ctx.Err() == nil; set, err = n.takeSet(ctx, k, 0) {
		n.sayf("no limit is known yet, and the store is asked again: %v", err)
		n.pause(ctx)
	}
	ticker := n.clock.NewTicker(listEvery)
	defer ticker.Stop()
	status, err := n.bus.Listen(bus.Status, "", newsKept)
	if err != nil {
		return // the connection has ended, and with it this keeper
	}
	defer status.Close()
	news, err := n.bus.Listen(bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			set, _ = n.takeSet(ctx, k, set) // a store that is away is asked again
		case said, open := <-status.C:
			if !open {
				return
			}
			k.hearStatus(ctx, said)
		case said, open := <-news.C:
			if !open {
				return
			}
			k.hearNews(ctx, said)
		}
	}
}

// hearStatus takes what limits are like of a worker that has calls under them.
func (k *keeping) hearStatus(ctx context.Context, w bus.Word) {
	var s struct {
		Limits map[string]machine.LaneConfig `json:"limits"`
	}
	if json.Unmarshal(w.Body, &s) != nil {
		return
	}
	for name, lane := range s.Limits {
		k.tell(ctx, limitOrder(name, lane))
	}
}

// hearNews takes a person's word about a limit.
func (k *keeping) hearNews(ctx context.Context, w bus.Word) {
	var n newsWord
	if w.About != bus.LimitNews || json.Unmarshal(w.Body, &n) != nil { // only an admin may say what is about limits
		return
	}
	switch {
	case n.Reset != "":
		k.tell(ctx, resetOrder(n.Reset))
	case n.Set != nil:
		k.tell(ctx, setOrder(n.Set.Name, n.Set.Lane))
	}
}

// knows reports whether the keeper may hear an ask: nothing is given under a limit of which nobody has said what it is
// like. A worker says it when it first has a call under it, and then each second.
func (k *keeping) knows(a *permit.Ask) bool {
	_, known := k.limits[a.Limit]
	return known
}
