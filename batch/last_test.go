package batch

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
)

// endings are the ways to end a run.
var endings = map[string]func(stop chan struct{}, ctl *Control, cancel context.CancelFunc, shared *Shared){
	"drain":   func(stop chan struct{}, _ *Control, _ context.CancelFunc, _ *Shared) { close(stop) },
	"control": func(_ chan struct{}, ctl *Control, _ context.CancelFunc, _ *Shared) { ctl.Drain() },
	"context": func(_ chan struct{}, _ *Control, cancel context.CancelFunc, _ *Shared) { cancel() },
	"close":   func(_ chan struct{}, _ *Control, _ context.CancelFunc, shared *Shared) { go shared.Close() },
}

// room is the number of items that a run takes with these options before the caller has
// taken two results.
const room = 9

func roomy(opts ...Option) []Option {
	return append(opts, WithConcurrency(1), WithReadAhead(room-1))
}

// atFirst ranges over a Stream, and does something with the first result when all else has
// gone as far as it can.
func atFirst(results iter.Seq2[Result[int, int], error], do func()) (n int, err error) {
	for _, err = range results {
		if n++; n == 1 {
			synctest.Wait()
			do()
			synctest.Wait()
		}
	}
	if err != nil {
		n--
	}
	return n, err
}

// A run may be told to stop when all its items are answered and the input has given exactly
// as many as there was room for. It then asks its input once more: if that was all, it has
// no error.
func TestToldToEndWithNothingLeft(t *testing.T) {
	for name, tell := range endings {
		for _, items := range []int{room - 1, room, room + 1} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					stop, ctl, shared := make(chan struct{}), NewControl(), newShared(t, WithPlainLaw(), WithReadAhead(room))
					var sum Summary
					opts := roomy(WithShared(shared), WithDrain(stop), WithControl(ctl), WithSummary(&sum))
					n, err := atFirst(Stream(ctx, numbers(items), double, opts...), func() { tell(stop, ctl, cancel, shared) })
					if left := items > room; (err != nil) != left || n != min(items, room) || sum.Succeeded != n || !sum.Proves() {
						t.Errorf("%d items: %d results, %v, %+v", items, n, err, sum)
					}
				})
			})
		}
	}
}

// noMore gives as many items as there is room for, and then blocks until the test ends.
func noMore(t *testing.T) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range room {
			if !yield(i) {
				return
			}
		}
		t.Error("it is asked for more")
		<-t.Context().Done()
	}
}

// The input is not asked where its answer would decide nothing: an item was left that it gave,
// too many have failed, or the loop over the results was left. There an input that blocks does
// not keep a run that is to end.
func TestToldToEndAsksNothingThatItNeedNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		fn := func(context.Context, int) (int, error) {
			synctest.Wait() // the others wait
			close(stop)
			return 0, nil
		}
		_, sum, err := proved(t.Context(), t, noMore(t), fn, roomy(WithDrain(stop))...)
		if !errors.Is(err, ErrDrained) || sum.NotRun != room-1 {
			t.Errorf("%v %+v", err, sum)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n, err := atFirst(Stream(t.Context(), noMore(t), fail(Invalid), roomy(WithPlainLaw(), WithMaxFailures(room))...), nothing)
		if !errors.Is(err, ErrTooManyFailures) || n != room {
			t.Errorf("%v after %d", err, n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		for range Stream(t.Context(), noMore(t), double, roomy(WithPlainLaw())...) {
			synctest.Wait()
			break
		}
	})
}

// An input that panics as it is asked for the last time is the run's error.
func TestToldToEndByAnInputThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		items := func(yield func(int) bool) {
			for i := range room {
				if !yield(i) {
					return
				}
			}
			explode()
		}
		n, err := atFirst(Stream(t.Context(), items, double, roomy(WithPlainLaw(), WithDrain(stop))...), func() { close(stop) })
		if !errors.Is(err, ErrInput) || n != room {
			t.Errorf("%v after %d", err, n)
		}
	})
}
