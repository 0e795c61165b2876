package otelheadrace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/contrib/otel"
	"github.com/headrace/headrace/observe"
)

// A run whose program has set no SDK is watched, and shown to nobody.
func Example() {
	ctx := context.Background()
	double := func(_ context.Context, n int) (int, error) { return 2 * n, nil }
	run, err := otelheadrace.Watch(ctx, otelheadrace.Config{Provider: "openai", CallSpans: true}, observe.Config{})
	if err != nil {
		panic(err)
	}
	results, err := batch.Run(ctx, slices.Values([]int{1, 2, 3}), double, run.Options()...)
	err = errors.Join(err, run.End(err))
	fmt.Println(len(results), "results,", err)
	// Output: 3 results, <nil>
}
