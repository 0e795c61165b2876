package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
)

// DefaultTerm is how long a keeper is one without renewing it, where there is one hub: four times
// as long as it takes to notice a lost answer and ask again. With three hubs the death of the
// leading one takes 3 to 4 s until another leads: ThreeTerm.
const (
	DefaultTerm = 3 * time.Second
	ThreeTerm   = 6 * time.Second
)

// Times are what the processes of a cluster must agree on. They stand in its store from when the first that works has
// joined: a worker that holds others dead sooner than they think they are has their work done twice, and a keeper
// with a longer lease than the others' is one of two.
type Times struct {
	AckWait time.Duration // after how long without a heartbeat a chunk is given to somebody else; 0: it was not told
	Term    time.Duration // of a keeper; 0: it was not told
}

func (t Times) withDefaults() Times {
	return Times{AckWait: cmp.Or(t.AckWait, bus.DefaultAckWait), Term: cmp.Or(t.Term, DefaultTerm)}
}

// timesName is the object in which they stand.
const timesName = "cluster/times"

// timesMost is the most bytes that are read of it.
const timesMost = 4 << 10

// settledTimes is that object.
type settledTimes struct {
	AckWait string `json:"ack_wait"`
	Lease   string `json:"lease"`
	By      string `json:"by"` // who came first, for people
	At      string `json:"at"`
}

// ErrTimes says that a process was told other times than its cluster has.
var ErrTimes = errors.New("all processes of a cluster must have the same")

// timesOf are those of the cluster in this store: what stands there, or, where nobody has worked yet, what was told
// here, with the defaults. Who works settles them; who was told others than stand there learns it.
func timesOf(ctx context.Context, s store.Store, told Times, settles bool, by string, now time.Time) (Times, error) {
	there, err := readTimes(ctx, s)
	if errors.Is(err, store.ErrMissing) {
		mine := told.withDefaults()
		if !settles {
			return mine, nil
		}
		if err = writeTimes(ctx, s, mine, by, now); err == nil {
			return mine, nil
		}
		if errors.Is(err, store.ErrExists) { // somebody was first, just now
			there, err = readTimes(ctx, s)
		}
	}
	if err != nil {
		return told, fmt.Errorf("node: the times of the cluster (%s in its store): %w", timesName, err)
	}
	return there, there.agree(told)
}

// agree refuses what was told and is something else here.
func (t Times) agree(told Times) error {
	var faults []error
	for _, one := range []struct {
		flag       string
		told, here time.Duration
	}{{"--ack-wait", told.AckWait, t.AckWait}, {"--lease", told.Term, t.Term}} {
		if one.told != 0 && one.told != one.here {
			faults = append(faults, fmt.Errorf("%s %v: in this cluster it is %v, as its first worker has settled it, and %w: remove the flag, or end all workers and delete %s in the store to set it again",
				one.flag, one.told, one.here, ErrTimes, timesName))
		}
	}
	return errors.Join(faults...)
}

func readTimes(ctx context.Context, s store.Store) (t Times, err error) {
	text, err := store.ReadAll(ctx, s, timesName, timesMost)
	if err != nil {
		return t, err
	}
	var said settledTimes
	if err := json.Unmarshal(text, &said); err != nil {
		return t, errors.New("it is damaged: end all workers and delete it")
	}
	var err1, err2 error
	t.AckWait, err1 = time.ParseDuration(said.AckWait)
	t.Term, err2 = time.ParseDuration(said.Lease)
	if err1 != nil || err2 != nil || t.AckWait <= 0 || t.Term <= 0 {
		return t, errors.New("it is damaged: end all workers and delete it")
	}
	return t, nil
}

func writeTimes(ctx context.Context, s store.Store, t Times, by string, now time.Time) error {
	text, err := json.Marshal(settledTimes{AckWait: t.AckWait.String(), Lease: t.Term.String(), By: by, At: now.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	return store.CreateBytes(ctx, s, timesName, append(text, '\n'))
}
