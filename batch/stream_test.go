package batch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// answers is a call whose answer begins after some time and is whole after more.
func answers(begins, whole time.Duration) Func[int, int] {
	return func(ctx context.Context, n int) (int, error) {
		for i, wait := range [...]time.Duration{begins, whole} {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			if i == 0 {
				provider.RecorderFrom(ctx).AnswerBegins()
			}
		}
		return n, nil
	}
}

func results(t *testing.T, fn Func[int, int], opts ...Option) (all []Result[int, int]) {
	t.Helper()
	for r, err := range Stream(t.Context(), numbers(3), fn, append([]Option{WithPlainLaw(), WithConcurrency(1), WithMaxAttempts(1)}, opts...)...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// An answer that has begun is ended by no clock of the attempt, however long it takes, and
// the worker's next calls have theirs.
func TestAnswerThatHasBegunIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 1 {
				return answers(3*time.Minute, 0)(ctx, i) // it begins too late
			}
			return answers(time.Minute, 11*time.Minute)(ctx, i)
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute)) {
			if late := errors.Is(r.Err, provider.Timeout); late != (r.Item == 1) || !late && r.Err != nil {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// The time of an item ends an answer on its way, and says so.
func TestItemsTimeEndsAnAnswerThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, n int) (int, error) {
			began := time.Now()
			_, err := answers(time.Minute, time.Hour)(ctx, n)
			if took := time.Since(began); took != 5*time.Minute {
				t.Errorf("item %d: ended after %v", n, took)
			}
			return n, err
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute), WithItemTimeout(5*time.Minute)) {
			if !errors.Is(r.Err, ErrItemTimeout) || !strings.Contains(r.Err.Error(), "5m0s") {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// A goroutine that a call left behind does not stop the clock of the next call.
func TestClockOfTheNextCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left context.Context
		fn := func(ctx context.Context, n int) (int, error) {
			if left != nil {
				provider.RecorderFrom(left).AnswerBegins()
			}
			if left = ctx; n == 0 {
				return n, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute)) {
			if late := errors.Is(r.Err, provider.Timeout); late != (r.Item > 0) {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// The time of an item that was left is not that of the worker's next call, which ends by its
// own.
func TestNextAttemptHasItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return answers(time.Minute, 5*time.Minute)(ctx, n)
			}
			return answers(time.Hour, 0)(ctx, n)
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute), WithItemTimeout(time.Hour)) {
			if late := errors.Is(r.Err, provider.Timeout) && !errors.Is(r.Err, ErrItemTimeout); late != (r.Item > 0) || r.Item == 0 && r.Err != nil {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}
