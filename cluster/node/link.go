package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/permit"
)

const (
	// givesKept bounds the gives that wait for their lanes: a second of forty lanes.
	givesKept = 1024
	// coolsKept bounds the cools that wait, likewise: a limit cools a few times a minute.
	coolsKept = 256
)

// A link passes messages between the lanes of this worker and the keeper. It sends a lane's messages to the bus, and a
// keeper's message to the lane that it is for. The sender repeats a message that is lost on the way.
type link struct {
	bus *bus.Bus
	// believes reports whether there is a keeper of an epoch. Messages of others go to no lane.
	believes func(ctx context.Context, epoch uint64) bool
	lanes    *batch.Control
	refusals *refusals
	gives    *bus.Feed[permit.Give]
	cools    *bus.Feed[permit.Cool]
	known    chan string // new lanes, by name
	names    []string    // of all lanes; only run uses it
}

// newLink begins to hear the keeper's messages to the worker.
func newLink(n *Node, lanes *batch.Control, r *refusals) (*link, error) {
	b := n.bus
	gives, err := b.Gives(b.Name(), givesKept)
	if err != nil {
		return nil, err
	}
	cools, err := b.Cools(coolsKept)
	if err != nil {
		gives.Close()
		return nil, err
	}
	return &link{bus: b, believes: n.epochs.Believes, lanes: lanes, refusals: r, gives: gives, cools: cools, known: make(chan string)}, nil
}

func (l *link) close() {
	l.gives.Close()
	l.cools.Close()
}

// add announces a lane. From then on the lane gets all cools of its limit.
func (l *link) add(ctx context.Context, lane string) {
	select {
	case l.known <- lane:
	case <-ctx.Done():
	}
}

// run passes messages on until ctx ends. A message that cannot be sent is no fault: the bus is away, and the lane
// repeats all of it.
func (l *link) run(ctx context.Context) {
	words, err := l.lanes.Words(ctx)
	if err != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case lane := <-l.known:
			l.names = append(l.names, lane)
		case said, open := <-words:
			if !open {
				words = nil
			}
			l.send(said)
		case g, open := <-l.gives.C:
			if !open {
				return
			}
			if !l.believes(ctx, g.Epoch) {
				continue
			}
			if len(g.Permits) > 0 {
				l.refusals.lift(g.Job, g.Limit)
			}
			_ = l.lanes.Tell(ctx, laneOf(g.Limit, g.Job), &g) // it fails only when ctx ends
		case c, open := <-l.cools.C:
			if !open {
				return
			}
			if l.believes(ctx, c.Epoch) {
				l.cool(ctx, &c)
			}
		}
	}
}

func (l *link) send(said []batch.Word) {
	for _, w := range said {
		if ask, is := w.Said.(*permit.Ask); is {
			_ = l.bus.SendAsk(*ask)
		}
	}
}

// cool passes a cool to all lanes of its limit.
func (l *link) cool(ctx context.Context, c *permit.Cool) {
	for lane := range slices.Values(l.names) {
		if limit, _ := partsOf(lane); limit == c.Limit {
			_ = l.lanes.Tell(ctx, lane, c)
		}
	}
}

// A worker's lane is one job under one limit, so that the keeper can share a limit among jobs
// and the core need not know of them.

// laneSeparator stands between the two names. No job's name has it, and no model's name has such a character.
const laneSeparator = "\x1f"

// laneOf names the lane of a job under a limit.
func laneOf(limit, job string) string { return limit + laneSeparator + job }

// partsOf reverses laneOf.
func partsOf(lane string) (limit, job string) {
	limit, job, _ = strings.Cut(lane, laneSeparator)
	return limit, job
}

// An accord is a worker's knowledge of the version that the keeper speaks. While a cluster is upgraded there are
// workers of two versions, and one keeper of either. Workers of the other version get no permits. They must not hold
// chunks meanwhile, as nobody else could work on those. They wait until the keeper is one of theirs. An accord belongs
// to one goroutine at a time.
type accord struct {
	*Node
	said    *bus.Feed[bus.Word]
	epoch   uint64    // of the latest keeper with another version than the one before
	version int       // that keeper's version; 0: as far as is known, this process's
	asked   time.Time // when the store was last asked for the keeper of an epoch
}

// picturesKept bounds the keepers' messages that wait to be heard: each keeper sends one a second.
const picturesKept = 16

func (n *Node) newAccord() (*accord, error) {
	said, err := n.bus.Listen(bus.Keeper, "", picturesKept)
	return &accord{Node: n, said: said}, err
}

func (a *accord) close() { a.said.Close() }

// hear notes a keeper's version, unless the sender is not keeper any more. A change of the version ends or begins all
// work, so the store must name the sender as the keeper of that epoch. It asks the store at most once in
// keeping.BelieveEvery.
func (a *accord) hear(ctx context.Context, w bus.Word) {
	var said struct {
		Version int    `json:"v"`
		Epoch   uint64 `json:"epoch"`
	}
	if json.Unmarshal(w.Body, &said) != nil || said.Epoch < a.epoch {
		return
	}
	version := cmp.Or(said.Version, 1) // the first version did not send it
	if version == cmp.Or(a.version, permit.Version) {
		return
	}
	if now := a.clock.Now(); now.Sub(a.asked) >= keeping.BelieveEvery {
		a.asked = now
		if a.epochs.IsKeeper(ctx, w.About, said.Epoch) {
			a.epoch, a.version = said.Epoch, version
		}
	}
}

func (a *accord) differs() bool { return a.version != 0 && a.version != permit.Version }

// await hears keepers until their version differs, or agrees, as differ says; false: done was closed or ctx ended
// first.
func (a *accord) await(ctx context.Context, done <-chan struct{}, differ bool) bool {
	for a.differs() != differ {
		select {
		case <-ctx.Done():
			return false
		case <-done:
			return false
		case w, open := <-a.said.C:
			if !open {
				return false
			}
			a.hear(ctx, w)
		}
	}
	return true
}

// drainIfKeeperDiffers ends the work softly once the keeper speaks another version.
func (w *worker) drainIfKeeperDiffers(ctx context.Context) {
	if w.accord.await(ctx, nil, true) {
		w.sayf("the keeper of the limits is another version of headrace (its messages are of version %d, this worker's of %d): "+
			"this worker gives its work to others, and waits", w.accord.version, permit.Version)
		w.drainNow()
	}
}

// waitFor waits for a keeper of this version, or until the worker is drained.
func (a *accord) waitFor(ctx context.Context, drain <-chan struct{}) (drained bool) {
	if a.await(ctx, drain, false) {
		a.sayf("the keeper of the limits is this version of headrace again: this worker goes on")
		return false
	}
	return ctx.Err() == nil
}
