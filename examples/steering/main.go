// My function knows best what went wrong: how does it say so?
//
// Any error is tried again, up to five times. batch.Permanent says that a retry is of no
// use. batch.RetryAfter says that the server is busy until then, which uses up no attempt
// and holds back every other item of the same lane as well.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
)

var (
	errBusy     = errors.New("come back later")
	errNonsense = errors.New("this can never work")
	errHiccup   = errors.New("connection lost")
)

// fetch reports "busy" once as busy, "nonsense" always as permanent, and loses its
// connection at the first try of "hiccup".
func fetch() batch.Func[string, string] {
	tries := map[string]int{} // one call at a time, below: no lock is needed
	return func(_ context.Context, page string) (string, error) {
		tries[page]++
		switch {
		case page == "nonsense":
			return "", batch.Permanent(errNonsense)
		case page == "busy" && tries[page] == 1:
			return "", batch.RetryAfter(200*time.Millisecond, errBusy)
		case page == "hiccup" && tries[page] == 1:
			return "", errHiccup
		}
		return "the page " + page, nil
	}
}

func main() {
	pages := []string{"simple", "nonsense", "hiccup", "busy"}
	results, err := batch.Run(context.Background(), slices.Values(pages), fetch(), batch.WithConcurrency(1))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("%-8s  calls %d  attempts %d  %q %v\n", r.Item, r.Calls, r.Attempts, r.Value, r.Err)
	}
}
