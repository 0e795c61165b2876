package keeping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
)

// Keepers of a cluster leave what must last under these names, in its home. Numbers have leading zeros, so that a list
// has them in order.
const (
	epochPrefix = "keeper/epoch-"
	lawPrefix   = "keeper/law-"
	epochDigits = 9
)

const (
	// lawEvery is the time between two copies of the law's knowledge in the store, for a bus that forgets it. The next
	// keeper learns what is newer again, in seconds.
	lawEvery = 10 * time.Second
	// maxLawBytes bounds the bytes of a law that are read: thousands of limits.
	maxLawBytes = 64 << 20
	// mintTries bounds the attempts to take a number when others are faster.
	mintTries = 100
)

// Numbered returns the name of the object with a number under a prefix.
func Numbered(prefix string, n uint64) string { return fmt.Sprintf("%s%0*d", prefix, epochDigits, n) }

// LatestNumber returns the highest number under a prefix, from known on; known if there is none.
func LatestNumber(ctx context.Context, s store.Store, prefix string, known uint64) (latest uint64, err error) {
	latest = known
	for o, err := range s.List(ctx, prefix, Numbered(prefix, known)) {
		if err != nil {
			return 0, err
		}
		if n, ok := numberOf(prefix, o.Name); ok {
			latest = max(latest, n)
		}
	}
	return latest, nil
}

// numberOf reverses Numbered.
func numberOf(prefix, name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, prefix), 10, 64)
	return n, err == nil
}

// BelieveEvery is the least time between two questions to the store about an epoch in a message: false messages may
// come by the thousand.
const BelieveEvery = time.Second

// believeWait bounds the time for which such a question may hold up its caller: a quarter of a permit's life.
const believeWait = 500 * time.Millisecond

// Epochs holds the latest keeper's epoch that a process has seen in the store. Several goroutines use it.
type Epochs struct {
	home   store.Store
	clock  clockwork.Clock
	latest atomic.Uint64 // the highest seen in the store
	asked  time.Time     // when the store was last asked for the sake of a message; looking guards it
	// looking has room for one: the goroutine that asks the store. The others wait for its finding.
	looking chan struct{}
}

// NewEpochs returns an Epochs that has seen no keeper yet.
func NewEpochs(home store.Store, clock clockwork.Clock) *Epochs {
	return &Epochs{home: home, clock: clock, looking: make(chan struct{}, 1)}
}

// learn raises latest to an epoch that the store has. Goroutines may learn out of order, so it never falls.
func (e *Epochs) learn(epoch uint64) {
	for {
		known := e.latest.Load()
		if epoch <= known || e.latest.CompareAndSwap(known, epoch) {
			return
		}
	}
}

// Believes reports whether the store has the keeper's epoch that a message names, or a later one. Only keepers create
// epochs there. A worker that believed a false epoch from a message would be deaf to every keeper.
func (e *Epochs) Believes(ctx context.Context, epoch uint64) bool {
	if epoch <= e.latest.Load() {
		return true
	}
	select {
	case e.looking <- struct{}{}:
		defer leave(e.looking)
	case <-ctx.Done():
		return false
	}
	now := e.clock.Now()
	if epoch <= e.latest.Load() || now.Sub(e.asked) < BelieveEvery {
		return epoch <= e.latest.Load()
	}
	e.asked = now
	ctx, stop := context.WithTimeout(ctx, believeWait)
	defer stop()
	latest, err := e.Latest(ctx)
	return err == nil && epoch <= latest
}

// Latest returns the epoch of the latest keeper, by the store.
func (e *Epochs) Latest(ctx context.Context) (uint64, error) {
	latest, err := LatestNumber(ctx, e.home, epochPrefix, e.latest.Load())
	if err == nil {
		e.learn(latest)
	}
	return latest, err
}

// IsKeeper reports whether a process has that epoch, by the store.
func (e *Epochs) IsKeeper(ctx context.Context, name string, epoch uint64) bool {
	ctx, stop := context.WithTimeout(ctx, believeWait)
	defer stop()
	text, err := store.ReadAll(ctx, e.home, Numbered(epochPrefix, epoch), maxKeeperBytes)
	return err == nil && strings.TrimSpace(string(text)) == name
}

// maxKeeperBytes bounds the bytes that are read of a keeper's name.
const maxKeeperBytes = 4 << 10

// mint creates an epoch that only this process has, higher than any before it.
func (e *Epochs) mint(ctx context.Context, who string) (uint64, error) {
	epoch, err := createNext(ctx, e.home, epochPrefix, e.latest.Load(), []byte(who+"\n"))
	if err == nil {
		e.learn(epoch)
	}
	return epoch, err
}

// createNext creates the object with the next number under a prefix. Known is a number that is there, or 0.
func createNext(ctx context.Context, s store.Store, prefix string, known uint64, text []byte) (number uint64, err error) {
	number, err = LatestNumber(ctx, s, prefix, known)
	if err != nil {
		return 0, err
	}
	for range mintTries {
		number++
		if err = store.CreateBytes(ctx, s, Numbered(prefix, number), text); !errors.Is(err, store.ErrExists) {
			break
		}
	}
	return number, err
}

// storeLaw puts the law's knowledge into the store, and deletes the previous copy. A failure does no harm: it is only
// a copy.
func storeLaw(ctx context.Context, home store.Store, epoch uint64, text []byte) {
	before, err := LatestNumber(ctx, home, lawPrefix, 0)
	if err != nil || before > (epoch+1)*lawsOfEpoch { // a later keeper's law is there, and this keeper is over
		return
	}
	if err := store.CreateBytes(ctx, home, Numbered(lawPrefix, max(before, epoch*lawsOfEpoch)+1), text); err == nil && before > 0 {
		_ = home.Delete(ctx, Numbered(lawPrefix, before))
	}
}

// lawsOfEpoch bounds the laws that a keeper may store: centuries of them. So a number shows whose law it is.
const lawsOfEpoch = 1_000_000_000

// loadLaw returns the latest law in the store; the zero value if there is none.
func loadLaw(ctx context.Context, home store.Store) (s snapshot) {
	latest, err := LatestNumber(ctx, home, lawPrefix, 0)
	if err != nil || latest == 0 {
		return s
	}
	text, err := store.ReadAll(ctx, home, Numbered(lawPrefix, latest), maxLawBytes)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return snapshot{}
	}
	return s
}
