package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
)

// founderName is the object that says who founded the cluster: the first process that worked with this store, or gave it
// work. No two lives of a process have the same name, so it tells this store from any other. The queue says for
// whose store it was made, and so a process learns of it whose store is not the others'. The order of events that this is
// about: a machine comes up without the folder that all share; its worker finds an empty one in its place, is
// given parts of jobs that are not there, and holds them up, each time, for ever.
const founderName = "cluster/founder"

// founderMost is the most bytes that are read of it.
const founderMost = 4 << 10

// ErrForeign says that the store that a process was told of is not its cluster's.
var ErrForeign = errors.New("it is not the store of this cluster")

// founderOf is who founded the cluster that has this store; "": nobody has. Who founds is the founder then.
func founderOf(ctx context.Context, s store.Store, founds bool, who string) (founder string, err error) {
	if founder, err = readFounder(ctx, s); founder != "" || err != nil || !founds {
		return founder, err
	}
	err = store.CreateBytes(ctx, s, founderName, []byte(who+"\n"))
	if errors.Is(err, store.ErrExists) { // somebody was first, just now
		return readFounder(ctx, s)
	}
	if err != nil {
		return "", fmt.Errorf("node: founder of the cluster: %w", err)
	}
	return who, nil
}

func readFounder(ctx context.Context, s store.Store) (string, error) {
	text, err := store.ReadAll(ctx, s, founderName, founderMost)
	switch {
	case errors.Is(err, store.ErrMissing):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("node: founder of the cluster: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// founderTries is how often, a second apart, it is looked for a founder of whom the queue says that he is in the store: a
// client of a file server remembers for some seconds what was not there.
const founderTries = 5

// sameStore is ErrForeign where the queue on the bus was made for another store than this. Any other error says that one
// of them could not be asked. The queue is asked first: who made it had been in the store before, and a worker that
// begins at the same time would else have looked before he was.
func sameStore(ctx context.Context, b *bus.Bus, s store.Store, home string, clock clockwork.Clock) error {
	there, err := b.Founder(ctx)
	if err != nil || there == "" {
		return err
	}
	here, err := readFounder(ctx, s)
	for tried := 1; here == "" && err == nil && tried < founderTries; tried++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clock.After(time.Second):
		}
		here, err = readFounder(ctx, s)
	}
	if err != nil || here == there {
		return err
	}
	return foreignTo(home, here, there)
}

func foreignTo(home, here, there string) error {
	if here == "" {
		here = "nobody has worked with it"
	} else {
		here = "its founder is " + here
	}
	return &fault{bus.Finding{
		Unsafe: true, What: fmt.Sprintf("%s: %v: %s, and the founder of the cluster is %s", home, ErrForeign, here, there),
		Why: "is it mounted here, and the same on all machines? To start over with another store, end the hubs and delete the folder jetstream in the --dir of each",
	}, ErrForeign}
}
