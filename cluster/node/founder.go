package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

// sameStore is ErrForeign where the queue on the bus was made for another store than this process has. Any other error says
// that the bus could not be asked.
func sameStore(ctx context.Context, b *bus.Bus, home, founder string) error {
	there, err := b.Founder(ctx)
	if err != nil || there == "" || there == founder {
		return err
	}
	here := "nobody has worked with it"
	if founder != "" {
		here = "its founder is " + founder
	}
	return &fault{bus.Finding{
		Unsafe: true, What: fmt.Sprintf("%s: %v: %s, and the cluster's is %s", home, ErrForeign, here, there),
		Why: "is it mounted here, and the same on all machines? To begin anew with another store, end the hubs and delete the folder jetstream in the --dir of each",
	}, ErrForeign}
}
