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
	// givesKept is how many gives may wait to be told to their lanes: a second of forty lanes.
	givesKept = 1024
	// coolsKept is how many words to all may wait, likewise: a limit cools a few times a minute.
	coolsKept = 256
)

// A link passes words between the lanes of this worker and the keeper: what the lanes say goes to
// the bus, what the keeper says goes to the lane that it is for. What is lost on the way is said
// again by who said it.
type link struct {
	bus *bus.Bus
	// believes reports whether there is a keeper of an epoch. Words of others go to no lane.
	believes func(ctx context.Context, epoch uint64) bool
	lanes    *batch.Control
	refusals *refusals
	gives    *bus.Feed[permit.Give]
	cools    *bus.Feed[permit.Cool]
	known    chan string // lanes that are new, by name
	names    []string    // of all lanes; the goroutine's in run
}

// newLink begins to hear what the keeper says to the worker.
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

// add says that there is a lane of that name. It is told what concerns its limit from then on.
func (l *link) add(ctx context.Context, lane string) {
	select {
	case l.known <- lane:
	case <-ctx.Done():
	}
}

// run passes words on until ctx ends. That a word cannot be sent is no fault: the bus is away,
// and the lane says all of it again.
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
			_ = l.lanes.Tell(ctx, laneOf(g.Limit, g.Job), &g) // it fails with ctx alone
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

// cool tells all lanes of a limit.
func (l *link) cool(ctx context.Context, c *permit.Cool) {
	for lane := range slices.Values(l.names) {
		if limit, _ := partsOf(lane); limit == c.Limit {
			_ = l.lanes.Tell(ctx, lane, c)
		}
	}
}

// A worker's lane is one job under one limit, so that the keeper can share a limit among jobs
// and the core need not know of them.

// laneSeparator stands between the two names: no name of a job has it, and it is no character
// that a model's name has.
const laneSeparator = "\x1f"

// laneOf names the lane of a job under a limit.
func laneOf(limit, job string) string { return limit + laneSeparator + job }

// partsOf is laneOf undone.
func partsOf(lane string) (limit, job string) {
	limit, job, _ = strings.Cut(lane, laneSeparator)
	return limit, job
}

// An accord is what a worker knows of the version that the keeper speaks. While a cluster is upgraded there are
// workers of two versions, and one keeper of either. Those of the other version get no permits: they must
// not hold chunks meanwhile, which nobody else could do, and wait until the keeper is one of theirs. It
// belongs to one goroutine at a time.
type accord struct {
	*Node
	said    *bus.Feed[bus.Word]
	epoch   uint64    // of the latest keeper whose version was another one than before
	version int       // its; 0: this process's, as far as is known
	asked   time.Time // when the store was last asked who has an epoch
}

// picturesKept is how many words of keepers may wait to be heard: of each there is one a second.
const picturesKept = 16

func (n *Node) newAccord() (*accord, error) {
	said, err := n.bus.Listen(bus.Keeper, "", picturesKept)
	return &accord{Node: n, said: said}, err
}

func (a *accord) close() { a.said.Close() }

// hear takes what a keeper says of its version, unless it is keeper no more. A change of the version ends or begins all
// work, so the store must name the speaker as the keeper of that epoch; it is asked once in keeping.BelieveEvery at most.
func (a *accord) hear(ctx context.Context, w bus.Word) {
	var said struct {
		Version int    `json:"v"`
		Epoch   uint64 `json:"epoch"`
	}
	if json.Unmarshal(w.Body, &said) != nil || said.Epoch < a.epoch {
		return
	}
	version := cmp.Or(said.Version, 1) // the first version did not say so
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

// await hears keepers until they differ, or do not; false: it has ended before, as done was closed or ctx has ended.
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

// drainIfKeeperDiffers ends the work softly once the keeper is one of another version.
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
