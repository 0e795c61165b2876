package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/store"
	"github.com/jonboulle/clockwork"
)

// hubPrefix begins the objects that name the hub on which the jobs of a store are queued. The one with the highest
// number counts. It prevents this order of events. A second hub is started for one store. Each hub has workers, a
// keeper and a queue of all jobs. So every chunk is worked on twice, and the limit is used twice.
const hubPrefix = "cluster/hub-"

// maxHubBytes bounds the bytes that are read of such an object.
const maxHubBytes = 4 << 10

// takeOverTries bounds the attempts to take a number when others take it first.
const takeOverTries = 100

// hubOf returns the hub that the store names, and the number of the object that names it. The number is 0 if the store
// names no hub.
func hubOf(ctx context.Context, s store.Store) (identity string, number uint64, err error) {
	number, err = keeping.LatestNumber(ctx, s, hubPrefix, 0)
	if err != nil || number == 0 {
		return "", 0, err
	}
	text, err := store.ReadAll(ctx, s, keeping.Numbered(hubPrefix, number), maxHubBytes)
	return strings.TrimSpace(string(text)), number, err
}

// nameHub writes the hub's identity to a store that names no hub yet. It does nothing for a bus without an identity.
func nameHub(ctx context.Context, s store.Store, identity string) error {
	if identity == "" {
		return nil
	}
	_, number, err := hubOf(ctx, s)
	if err == nil && number == 0 {
		err = store.CreateBytes(ctx, s, keeping.Numbered(hubPrefix, 1), []byte(identity+"\n"))
	}
	if err != nil && !errors.Is(err, store.ErrExists) { // another process was first, just now
		return fmt.Errorf("node: hub of the store: %w", err)
	}
	return nil
}

// checkSameHub returns an error of kind ErrOtherStore if the store names another hub than this one.
func checkSameHub(ctx context.Context, s store.Store, home, identity string) error {
	if identity == "" {
		return nil
	}
	named, number, err := hubOf(ctx, s)
	switch {
	case err != nil:
		return fmt.Errorf("node: hub of the store: %w", err)
	case number == 0 || named == identity:
		return nil
	}
	return &joinError{bus.Finding{
		Unsafe: true, What: fmt.Sprintf("%s belongs to another hub: its jobs are queued on hub %s, and this is hub %s", home, named, identity),
		Why: "two hubs would have all work done twice: join by the line of that hub; or, if it is gone for good, run `headrace cluster take-over` with this line",
	}, ErrOtherStore}
}

// hubCheckTerms is the number of terms between two looks at the hub that the store names. It is for workers that never keep,
// as there may be hundreds of them. A worker that may keep looks as keeper, or before it becomes one.
const hubCheckTerms = 20

// watchHub waits until the store names another hub, and then returns an error of kind ErrOtherStore. It returns nil when
// ctx ends.
func (n *Node) watchHub(ctx context.Context) error {
	ticker := n.clock.NewTicker(hubCheckTerms * n.cfg.Times.Term)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.Chan():
			if err := n.checkSameHub(ctx); errors.Is(err, ErrOtherStore) { // a store that is away does not count, and the next look asks again
				return err
			}
		}
	}
}

// TakeOver names the hub of this process in the store, in place of another one, whose name it returns; "": there was
// none. Keepers of the other hub, and workers that may keep, see it within seconds and end. Workers that never keep end
// within a minute.
func (n *Node) TakeOver(ctx context.Context) (before string, err error) {
	own := n.bus.Identity()
	if own == "" {
		return "", errors.New("node: take over: the bus has no name that lasts: give its server a server_name or a cluster name")
	}
	if err := n.checkMayChange(); err != nil {
		return "", err
	}
	for range takeOverTries {
		named, number, err := hubOf(ctx, n.home)
		if err != nil {
			return "", fmt.Errorf("node: take over: %w", err)
		}
		if named == own {
			return before, nil
		}
		before = named
		err = store.CreateBytes(ctx, n.home, keeping.Numbered(hubPrefix, number+1), []byte(own+"\n"))
		if err != nil && !errors.Is(err, store.ErrExists) {
			return "", fmt.Errorf("node: take over: %w", err)
		}
	}
	return "", errors.New("node: take over: others take over at the same time")
}

// creatorName is the object that names the creator of the cluster: the first process that worked with this store, or
// gave it work. No two lives of a process have the same name, so the creator tells this store from any other. The queue
// names the creator of the store that it was made for. So a process learns from the queue that its own store is another
// one. This prevents the following order of events. A machine comes up without the folder that all share. Its worker
// finds an empty one in its place, and gets chunks of jobs that are not there. It holds them up, each time, for ever.
const creatorName = "cluster/founder"

// maxCreatorBytes bounds the bytes that are read of it.
const maxCreatorBytes = 4 << 10

// ErrOtherStore says that a process was given a store that is not its cluster's.
var ErrOtherStore = errors.New("it is not the store of this cluster")

// creatorOf returns the creator of the cluster with this store; "": it has none. If founds is set and there is none,
// the process of that name becomes the creator.
func creatorOf(ctx context.Context, s store.Store, founds bool, name string) (creator string, err error) {
	if creator, err = readCreator(ctx, s); creator != "" || err != nil || !founds {
		return creator, err
	}
	err = store.CreateBytes(ctx, s, creatorName, []byte(name+"\n"))
	if errors.Is(err, store.ErrExists) { // another process was first, just now
		return readCreator(ctx, s)
	}
	if err != nil {
		return "", fmt.Errorf("node: founder of the cluster: %w", err)
	}
	return name, nil
}

// readCreator reads the creator from the store; "": there is none yet.
func readCreator(ctx context.Context, s store.Store) (string, error) {
	text, err := store.ReadAll(ctx, s, creatorName, maxCreatorBytes)
	switch {
	case errors.Is(err, store.ErrMissing):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("node: founder of the cluster: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// creatorTries bounds the looks, a second apart, for a creator that the queue names and the store lacks. A client of a
// file server remembers for some seconds that an object was missing.
const creatorTries = 5

// checkSameStore returns ErrOtherStore if the queue on the bus was made for another store than this. Any other error says that
// one of them could not be asked. It asks the queue first, as the queue's maker had been in the store before. In the
// other order, a worker that begins at the same time could look before the creator is there.
func checkSameStore(ctx context.Context, b *bus.Bus, s store.Store, home string, clock clockwork.Clock) error {
	there, err := b.Creator(ctx)
	if err != nil || there == "" {
		return err
	}
	here, err := readCreator(ctx, s)
	for tried := 1; here == "" && err == nil && tried < creatorTries; tried++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clock.After(time.Second):
		}
		here, err = readCreator(ctx, s)
	}
	if err != nil || here == there {
		return err
	}
	return otherStoreError(home, here, there)
}

// otherStoreError returns the error for a store whose creator is not the one that the bus names.
func otherStoreError(home, here, there string) error {
	if here == "" {
		here = "nobody has worked with it"
	} else {
		here = "its founder is " + here
	}
	return &joinError{bus.Finding{
		Unsafe: true, What: fmt.Sprintf("%s: %v: %s, and the founder of the cluster is %s", home, ErrOtherStore, here, there),
		Why: "is it mounted here, and the same on all machines? To start over with another store, end the hubs and delete the folder jetstream in the --dir of each",
	}, ErrOtherStore}
}

// DefaultTerm is the time for which a keeper lasts without renewal, with one hub. It is four times as long as it
// takes to notice a lost answer and ask again. Three hubs need twice as long: 3 to 4 s pass from the death of the
// leading hub until another leads.
const DefaultTerm = 3 * time.Second

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

// maxTimesBytes bounds the bytes that are read of it.
const maxTimesBytes = 4 << 10

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
func timesOf(ctx context.Context, s store.Store, configured Times, settles bool, by string, now time.Time) (Times, error) {
	settled, err := readTimes(ctx, s)
	if errors.Is(err, store.ErrMissing) {
		own := configured.withDefaults()
		if !settles {
			return own, nil
		}
		if err = writeTimes(ctx, s, own, by, now); err == nil {
			return own, nil
		}
		if errors.Is(err, store.ErrExists) { // another process was first, just now
			settled, err = readTimes(ctx, s)
		}
	}
	if err != nil {
		return configured, fmt.Errorf("node: the times of the cluster (%s in its store): %w", timesName, err)
	}
	return settled, settled.checkGiven(configured)
}

// checkGiven returns an error for each configured time that differs from the cluster's. A time that was not configured
// agrees with any.
func (t Times) checkGiven(configured Times) error {
	var faults []error
	for _, one := range []struct {
		flag             string
		configured, here time.Duration
	}{{"--ack-wait", configured.AckWait, t.AckWait}, {"--lease", configured.Term, t.Term}} {
		if one.configured != 0 && one.configured != one.here {
			faults = append(faults, fmt.Errorf("%s %v: in this cluster it is %v, as its first worker has settled it, and %w: remove the flag, or end all workers and delete %s in the store to set it again",
				one.flag, one.configured, one.here, ErrTimes, timesName))
		}
	}
	return errors.Join(faults...)
}

// readTimes reads the settled times of the cluster: [store.ErrMissing] if nobody has worked yet. A
// damaged object does not count as missing, because others may work by its times.
func readTimes(ctx context.Context, s store.Store) (t Times, err error) {
	text, err := store.ReadAll(ctx, s, timesName, maxTimesBytes)
	if err != nil {
		return t, err
	}
	var settled settledTimes
	if err := json.Unmarshal(text, &settled); err != nil {
		return t, errors.New("it is damaged: end all workers and delete it")
	}
	var err1, err2 error
	t.AckWait, err1 = time.ParseDuration(settled.AckWait)
	t.Term, err2 = time.ParseDuration(settled.Lease)
	if err1 != nil || err2 != nil || t.AckWait <= 0 || t.Term <= 0 {
		return t, errors.New("it is damaged: end all workers and delete it")
	}
	return t, nil
}

// writeTimes writes the times of the cluster, unless they are there: [store.ErrExists].
func writeTimes(ctx context.Context, s store.Store, t Times, by string, now time.Time) error {
	text, err := json.Marshal(settledTimes{AckWait: t.AckWait.String(), Lease: t.Term.String(), By: by, At: now.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	return store.CreateBytes(ctx, s, timesName, append(text, '\n'))
}
