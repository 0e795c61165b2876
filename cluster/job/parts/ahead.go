package parts

import (
	"context"
	"iter"
)

// atOnce is the number of parallel requests for objects: a bucket takes some 20 ms to begin with one, so
// a hundred thousand of them, one after the other, would take half an hour.
const atOnce = 16

// done is the result of one element.
type done[R any] struct {
	result R
	err    error
}

// ahead runs do for each element, n at a time, and yields the results in the order of the elements. The first
// error ends them. Results that are not yielded, because the caller leaves early, go to drop. When ahead
// returns, nothing of it is running.
func ahead[T, R any](ctx context.Context, n int, all iter.Seq2[T, error], do func(context.Context, T) (R, error), drop func(R)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var under []chan done[R] // way, in order
		defer func() {
			cancel()
			for _, c := range under {
				if d := <-c; d.err == nil {
					drop(d.result)
				}
			}
		}()
		first := func() bool {
			d := <-under[0]
			under = under[1:]
			return yield(d.result, d.err) && d.err == nil
		}
		for one, err := range all {
			c := make(chan done[R], 1)
			under = append(under, c)
			go func() {
				d := done[R]{err: err}
				if err == nil {
					d.result, d.err = do(ctx, one)
				}
				c <- d
			}()
			if err != nil || len(under) == n {
				if !first() {
					return
				}
			}
		}
		for len(under) > 0 {
			if !first() {
				return
			}
		}
	}
}
