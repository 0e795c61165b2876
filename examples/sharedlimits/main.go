// Two jobs use one key: how do they keep to its limit together?
//
// batch.Shared is one coordinator for several runs. Lanes of the same name are one quota:
// here 3,000 calls a minute, that is 50 a second, for both jobs together. Each gets its
// turn, and the provider refuses nothing.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/headrace/headrace/batch"
)

const key = "my-key/my-model" // the name of the quota

func main() {
	shared, err := batch.NewShared(batch.WithLimits(batch.Limits{RPM: 3000}))
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close()

	var jobs errgroup.Group
	answered := make([]int, 2)
	for job, items := range [][]string{slices.Repeat([]string{"summary of a page"}, 60), slices.Repeat([]string{"translation"}, 40)} {
		jobs.Go(func() error {
			results, err := batch.Run(context.Background(), slices.Values(items), call,
				batch.WithShared(shared), batch.WithPoolOf(func(string) string { return key }))
			answered[job] = len(results)
			return err
		})
	}
	if err := jobs.Wait(); err != nil {
		log.Fatal(err)
	}
	s, err := shared.Status(context.Background(), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d and %d answered on %d lane, %d calls on %s\n",
		answered[0], answered[1], s.Known, s.Lanes[0].Counters.Calls, s.Lanes[0].Name)
}

// call stands for the request to the provider.
func call(_ context.Context, what string) (string, error) { return "a " + what, nil }
