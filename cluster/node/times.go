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

// DefaultTerm is the time for which a keeper lasts without renewal, with one hub. It is four times as long as it
// takes to notice a lost answer and ask again. With three hubs, 3 to 4 s pass from the death of the leading hub until
// another leads: ThreeTerm.
const (
	DefaultTerm = 3 * time.Second
	ThreeTerm   = 6 * time.Second
)

// Times holds the times that the processes of a cluster must share. They stand in its store from the time when the
// first working process joins. A worker that takes others for dead sooner than they expect has their work done twice.
// A keeper with a longer lease than the others' is one of two.
type Times struct {
	AckWait time.Duration // the silence after which a chunk goes to another worker; 0: not given
	Term    time.Duration // of a keeper; 0: not given
}

func (t Times) withDefaults() Times {
	return Times{AckWait: cmp.Or(t.AckWait, bus.DefaultAckWait), Term: cmp.Or(t.Term, DefaultTerm)}
}

// timesName is the object that holds them.
const timesName = "cluster/times"

// timesMost bounds the bytes that are read of it.
const timesMost = 4 << 10

// settledTimes is the content of that object.
type settledTimes struct {
	AckWait string `json:"ack_wait"`
	Lease   string `json:"lease"`
	By      string `json:"by"` // the first process, for people
	At      string `json:"at"`
}

// ErrTimes says that a process was given other times than its cluster has.
var ErrTimes = errors.New("all processes of a cluster must have the same")

// timesOf returns the times of the cluster in this store. Where nobody has worked yet it returns the given times,
// with defaults. A process that works settles them. A process that was given other times than the store's gets an
// error.
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
		if errors.Is(err, store.ErrExists) { // another process was first, just now
			there, err = readTimes(ctx, s)
		}
	}
	if err != nil {
		return told, fmt.Errorf("node: the times of the cluster (%s in its store): %w", timesName, err)
	}
	return there, there.agree(told)
}

// agree returns an error for given times that differ from these.
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
