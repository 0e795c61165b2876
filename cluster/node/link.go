package node

import (
	"context"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
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
	return &link{bus: b, believes: n.believes, lanes: lanes, refusals: r, gives: gives, cools: cools, known: make(chan string)}, nil
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
