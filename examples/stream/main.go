// My input does not fit in memory: how do I take results as they come, in order?
//
// batch.Stream reads the input as it needs it and yields each result; the loop is the scope
// of the run. WithInputOrder yields them in the order of the input, and the summary proves
// that none was lost and none came twice.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
)

// numbers would read a file, a database or a queue. The run takes only a bounded number of
// items ahead of the results taken from it.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// spell is the call: it takes a while, and not always the same.
func spell(_ context.Context, n int) (string, error) {
	time.Sleep(time.Duration(n%7) * 300 * time.Microsecond)
	return strings.Repeat("I", n%5), nil
}

func main() {
	var sum batch.Summary
	last, ordered := -1, true
	for r, err := range batch.Stream(context.Background(), numbers(20_000), spell,
		batch.WithConcurrency(256), batch.WithInputOrder(), batch.WithSummary(&sum)) {
		if err != nil {
			log.Fatal(err) // the error of the run, and always last
		}
		ordered = ordered && r.Index == last+1
		last = r.Index
	}
	fmt.Printf("%d results, in order: %v\n", last+1, ordered)
	fmt.Printf("offered %d = settled %d + released %d: %v\n",
		sum.Counters.Offered, sum.Counters.Settled, sum.Counters.Released, sum.Proves())
}
