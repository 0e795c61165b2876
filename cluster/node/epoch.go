package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// latestEpoch is that of the latest keeper there ever was; known is one that there was.
func (n *Node) latestEpoch(ctx context.Context, known uint64) (uint64, error) {
	return latestNumber(ctx, n.home, epochPrefix, known)
}

// mint makes an epoch that is this process's alone, higher than any before it.
func (n *Node) mint(ctx context.Context, known uint64) (uint64, error) {
	epoch, err := n.latestEpoch(ctx, known)
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
