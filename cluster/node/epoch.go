package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/cluster/store"
)

// Where the keepers of a cluster leave what must last, under its home. Numbers have leading zeros,
// so that a list has them in order.
const (
	epochPrefix = "keeper/epoch-"
	lawPrefix   = "keeper/law-"
	epochDigits = 9
)

const (
	// lawEvery is how often what the law knows goes into the store, for where the bus forgets it: what
	// was learned since is learned again, in seconds.
	lawEvery = 10 * time.Second
	// lawMost is how many bytes of it are read: thousands of limits.
	lawMost = 64 << 20
	// mintTries is how often another number is tried where somebody was faster.
	mintTries = 100
)

func numbered(prefix string, n uint64) string { return fmt.Sprintf("%s%0*d", prefix, epochDigits, n) }

// latestNumber is the highest number under a prefix, of those from known on; known if there is none.
func latestNumber(ctx context.Context, s store.Store, prefix string, known uint64) (latest uint64, err error) {
	latest = known
	for o, err := range s.List(ctx, prefix, numbered(prefix, known)) {
		if err != nil {
			return 0, err
		}
		if n, ok := numberOf(prefix, o.Name); ok {
			latest = max(latest, n)
		}
	}
	return latest, nil
}

// numberOf is numbered undone.
func numberOf(prefix, name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, prefix), 10, 64)
	return n, err == nil
}

// believeEvery is how often the store is asked at most for the epoch that a message names: false messages may come by
// the thousand. believeWait is how long such a look may hold up its caller: a quarter of a permit's life.
const (
	believeEvery = time.Second
	believeWait  = 500 * time.Millisecond
)

// An epochs holds the latest keeper's epoch that a process has seen in the store. Several goroutines use it.
type epochs struct {
	latest atomic.Uint64 // the highest that was seen in the store
	asked  time.Time     // when the store was last asked for the sake of a message; looking guards it
	// looking has room for one: the goroutine that asks the store is in it, and others wait for its finding.
	looking chan struct{}
}

func newEpochs() *epochs { return &epochs{looking: make(chan struct{}, 1)} }

func (e *epochs) learn(epoch uint64) {
	for {
		known := e.latest.Load()
		if epoch <= known || e.latest.CompareAndSwap(known, epoch) {
			return
		}
	}
}

// believes reports whether the store has the keeper's epoch that a message names, or a later one. Only keepers make epochs
// there, and one that a worker believed for a message's sake would make it deaf to every keeper.
func (n *Node) believes(ctx context.Context, epoch uint64) bool {
	if epoch <= n.epochs.latest.Load() {
		return true
	}
	select {
	case n.epochs.looking <- struct{}{}:
		defer leave(n.epochs.looking)
	case <-ctx.Done():
		return false
	}
	now := n.clock.Now()
	if epoch <= n.epochs.latest.Load() || now.Sub(n.epochs.asked) < believeEvery {
		return epoch <= n.epochs.latest.Load()
	}
	n.epochs.asked = now
	ctx, stop := context.WithTimeout(ctx, believeWait)
	defer stop()
	latest, err := n.latestEpoch(ctx)
	return err == nil && epoch <= latest
}

// latestEpoch is that of the latest keeper there ever was, by the store.
func (n *Node) latestEpoch(ctx context.Context) (uint64, error) {
	latest, err := latestNumber(ctx, n.home, epochPrefix, n.epochs.latest.Load())
	if err == nil {
		n.epochs.learn(latest)
	}
	return latest, err
}

// isKeeper reports whether a process has that epoch, by the store.
func (n *Node) isKeeper(ctx context.Context, name string, epoch uint64) bool {
	ctx, stop := context.WithTimeout(ctx, believeWait)
	defer stop()
	text, err := store.ReadAll(ctx, n.home, numbered(epochPrefix, epoch), keeperMost)
	return err == nil && strings.TrimSpace(string(text)) == name
}

// keeperMost is the most bytes that are read of a keeper's name.
const keeperMost = 4 << 10

// mint makes an epoch that is this process's alone, higher than any before it.
func (n *Node) mint(ctx context.Context) (uint64, error) {
	epoch, err := n.latestEpoch(ctx)
	for range mintTries {
		if err != nil {
			return 0, err
		}
		epoch++
		err = store.CreateBytes(ctx, n.home, numbered(epochPrefix, epoch), []byte(n.Name()+"\n"))
		if !errors.Is(err, store.ErrExists) {
			break
		}
		err = nil
	}
	if err == nil {
		n.epochs.learn(epoch)
	}
	return epoch, err
}

// storeLaw puts what the law knows into the store, and takes away what it knew before. It is a copy:
// that it fails is no fault.
func (n *Node) storeLaw(ctx context.Context, epoch uint64, text []byte) {
	before, err := latestNumber(ctx, n.home, lawPrefix, 0)
	if err != nil || before > (epoch+1)*lawsOfEpoch { // a later keeper's is there, and this one is over
		return
	}
	if err := store.CreateBytes(ctx, n.home, numbered(lawPrefix, max(before, epoch*lawsOfEpoch)+1), text); err == nil && before > 0 {
		_ = n.home.Delete(ctx, numbered(lawPrefix, before))
	}
}

// lawsOfEpoch is how many laws a keeper may leave: centuries of them. So a number tells whose law it is.
const lawsOfEpoch = 1_000_000_000

// loadLaw is the latest that is in the store; the zero value if there is none.
func (n *Node) loadLaw(ctx context.Context) (s snapshot) {
	latest, err := latestNumber(ctx, n.home, lawPrefix, 0)
	if err != nil || latest == 0 {
		return s
	}
	text, err := store.ReadAll(ctx, n.home, numbered(lawPrefix, latest), lawMost)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return snapshot{}
	}
	return s
}
