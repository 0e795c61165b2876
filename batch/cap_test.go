package batch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// slots are those of a function of one's own: it refuses one more at once.
func slots(n int, takes time.Duration, refused *int) Func[int, int] {
	free := make(chan int, 1)
	free <- n
	return func(ctx context.Context, i int) (int, error) {
		left := <-free
		if left == 0 {
			*refused++
			free <- 0
			return i, &Error{Kind: Throttled}
		}
		free <- left - 1
		err := pause(ctx, takes)
		free <- <-free + 1
		return i, err
	}
}

// A function may accept only so many calls at a time and refuse one more at once. Its run
// is nearly as fast as one that knows the cap. Besides the refusals that find the cap, the
// run tries one more call from time to time.
func TestFunctionThatTakesSoManyAtATime(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 16, 64} {
		for _, takes := range []time.Duration{30 * time.Millisecond, 200 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%d of %v", n, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const each = 125 // calls in each slot: 500 in four
					refused, ideal := 0, each*takes
					var sum Summary
					_, err := Run(t.Context(), numbers(each*n), slots(n, takes, &refused), WithConcurrency(max(64, 4*n)), WithSummary(&sum))
					if err != nil || sum.Succeeded != each*n || sum.Elapsed > ideal*5/4 {
						t.Errorf("%v, %v of %v, %+v", err, sum.Elapsed, ideal, sum)
					}
					if refused > 3*n+each*n/30 {
						t.Errorf("%d refused", refused)
					}
				})
			})
		}
	}
}

// A server of one's own that queues is asked more and more. One that refuses beyond so many
// calls is found out with no more refusals than any other.
func TestLocalServerThatTakesSoManyAtATime(t *testing.T) {
	for _, n := range []int{8, 20, 64, 150} {
		for _, takes := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%d of %v", n, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const each = 125
					refused, ideal := 0, each*takes
					var sum Summary
					_, err := Run(t.Context(), numbers(each*n), slots(n, takes, &refused), WithConcurrency(max(64, 4*n)), WithLocalServer(time.Minute), WithSummary(&sum))
					t.Logf("%d refused, %v of %v", refused, sum.Elapsed, ideal)
					if err != nil || sum.Succeeded != each*n {
						t.Errorf("%v, %+v", err, sum)
					}
					if refused > 3*n+each*n/100 {
						t.Errorf("%d refused", refused)
					}
				})
			})
		}
	}
}
