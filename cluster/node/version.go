package node

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/permit"
)

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
	said, err := n.bus.Listen(keeperTopic, "", picturesKept)
	return &accord{Node: n, said: said}, err
}

func (a *accord) close() { a.said.Close() }

// hear takes what a keeper says of its version, unless it is keeper no more. A change of the version ends or begins all
// work, so the store must name the speaker as the keeper of that epoch; it is asked once in believeEvery at most.
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
	if now := a.clock.Now(); now.Sub(a.asked) >= believeEvery {
		a.asked = now
		if a.isKeeper(ctx, w.About, said.Epoch) {
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
