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

// Numbered names the object with a number under a prefix.
func Numbered(prefix string, n uint64) string { return fmt.Sprintf("%s%0*d", prefix, epochDigits, n) }

// LatestNumber is the highest number under a prefix, of those from known on; known if there is none.
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

// numberOf is Numbered undone.
func numberOf(prefix, name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, prefix), 10, 64)
	return n, err == nil
}

// BelieveEvery is how often the store is asked at most for the epoch that a message names: false messages may come by
// the thousand.
const BelieveEvery = time.Second

// believeWait is how long such a look may hold up its caller: a quarter of a permit's life.
const believeWait = 500 * time.Millisecond

// Epochs holds the latest keeper's epoch that a process has seen in the store. Several goroutines use it.
type Epochs struct {
	home   store.Store
	clock  clockwork.Clock
	latest atomic.Uint64 // the highest that was seen in the store
	asked  time.Time     // when the store was last asked for the sake of a message; looking guards it
	// looking has room for one: the goroutine that asks the store is in it, and others wait for its finding.
	looking chan struct{}
}

// NewEpochs makes one that has seen no keeper yet.
func NewEpochs(home store.Store, clock clockwork.Clock) *Epochs {
	return &Epochs{home: home, clock: clock, looking: make(chan struct{}, 1)}
}

func (e *Epochs) learn(epoch uint64) {
	for {
		known := e.latest.Load()
		if epoch <= known || e.latest.CompareAndSwap(known, epoch) {
			return
		}
	}
}

// Believes reports whether the store has the keeper's epoch that a message names, or a later one. Only keepers make epochs
// there, and one that a worker believed for a message's sake would make it deaf to every keeper.
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

// Latest is that of the latest keeper there ever was, by the store.
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
	text, err := store.ReadAll(ctx, e.home, Numbered(epochPrefix, epoch), keeperMost)
	return err == nil && strings.TrimSpace(string(text)) == name
}

// keeperMost is the most bytes that are read of a keeper's name.
const keeperMost = 4 << 10

// mint makes an epoch that is this process's alone, higher than any before it.
func (e *Epochs) mint(ctx context.Context, who string) (uint64, error) {
	epoch, err := e.Latest(ctx)
	for range mintTries {
		if err != nil {
			return 0, err
		}
		epoch++
		err = store.CreateBytes(ctx, e.home, Numbered(epochPrefix, epoch), []byte(who+"\n"))
		if !errors.Is(err, store.ErrExists) {
			break
		}
		err = nil
	}
	if err == nil {
		e.learn(epoch)
	}
	return epoch, err
}

// storeLaw puts what the law knows into the store, and takes away what it knew before. It is a copy:
// that it fails is no fault.
func storeLaw(ctx context.Context, home store.Store, epoch uint64, text []byte) {
	before, err := LatestNumber(ctx, home, lawPrefix, 0)
	if err != nil || before > (epoch+1)*lawsOfEpoch { // a later keeper's is there, and this one is over
		return
	}
	if err := store.CreateBytes(ctx, home, Numbered(lawPrefix, max(before, epoch*lawsOfEpoch)+1), text); err == nil && before > 0 {
		_ = home.Delete(ctx, Numbered(lawPrefix, before))
	}
}

// lawsOfEpoch is how many laws a keeper may leave: centuries of them. So a number tells whose law it is.
const lawsOfEpoch = 1_000_000_000

// loadLaw is the latest that is in the store; the zero value if there is none.
func loadLaw(ctx context.Context, home store.Store) (s snapshot) {
	latest, err := LatestNumber(ctx, home, lawPrefix, 0)
	if err != nil || latest == 0 {
		return s
	}
	text, err := store.ReadAll(ctx, home, Numbered(lawPrefix, latest), lawMost)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return snapshot{}
	}
	return s
}
