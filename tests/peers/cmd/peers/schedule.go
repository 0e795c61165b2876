package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// apart is the time between the starts of two runs: the first moments of a process are its
// most expensive.
const apart = 200 * time.Millisecond

// all runs the rows, as many at once as there is room for. A row that needs more room than
// there is gets all of it.
func all(ctx context.Context, p plan, dir string, some []row) ([]outcome, error) {
	found := make([]outcome, len(some))
	room := semaphore.NewWeighted(p.room)
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range some {
		weight := min(r.weight, p.room)
		if err := room.Acquire(ctx, weight); err != nil {
			break // the group knows the fault
		}
		group.Go(func() (err error) {
			defer room.Release(weight)
			found[i], err = repeat(ctx, p, dir, r)
			if err == nil {
				fmt.Fprintln(os.Stderr, found[i].line())
			}
			return err
		})
		time.Sleep(apart)
	}
	return found, group.Wait()
}
