package batch

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// nobody is an address at which nobody listens.
var nobody = fail(&provider.Error{Kind: provider.TransportFault, Err: syscall.ECONNREFUSED})

// givenUp fails the test unless the run has ended as its lane was never answered, and says
// what its calls broke of.
func givenUp(t *testing.T, err error) {
	t.Helper()
	var e *provider.Error
	if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrNoAnswer) || !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// A run whose first calls all break in one way ends within a minute, by both laws, with
// whatever concurrency, and says why. No item has failed for that, so a later run has them
// all.
func TestNoAnswerEndsARun(t *testing.T) {
	for name, opts := range map[string][]Option{
		"plain":      {WithPlainLaw()},
		"model":      {WithLaneDefaults(LaneConfig{})},
		"one by one": {WithConcurrency(1)},
		"sooner":     {WithFirstAnswer(5 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				results, sum, err := proved(t.Context(), t, numbers(100), nobody, opts...)
				givenUp(t, err)
				took := time.Since(began)
				if took > time.Minute || name == "sooner" && took > 15*time.Second || sum.Succeeded+sum.Failed > 0 {
					t.Errorf("it took %v, %+v", took, sum)
				}
				for _, r := range results {
					if !errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, ErrNoAnswer) {
						t.Errorf("%+v", r)
					}
				}
			})
		})
	}
}

// A server that is slow, or says that it is busy, is waited for; so is one that has
// answered once, and one for which the user waits.
func TestFirstAnswerIsWaitedFor(t *testing.T) {
	since := func(d time.Duration, before, after Func[int, int]) Func[int, int] {
		began := time.Now()
		return func(ctx context.Context, i int) (int, error) {
			if time.Since(began) < d {
				return before(ctx, i)
			}
			return after(ctx, i)
		}
	}
	for name, c := range map[string]struct {
		fn   func() Func[int, int]
		opts []Option
	}{
		"slow": {fn: func() Func[int, int] { return takes(100 * time.Second) }},
		"busy": {fn: func() Func[int, int] {
			return since(time.Second, fail(&provider.Error{Kind: provider.Overloaded}), since(10*time.Minute, nobody, double))
		}},
		"slow, and breaks what is too much": {fn: func() Func[int, int] {
			return since(time.Second, takes(100*time.Second), since(90*time.Second, nobody, double))
		}},
		"answered once": {fn: func() Func[int, int] { return since(time.Second, double, since(20*time.Minute, nobody, double)) }},
		"now so, now so": {fn: func() Func[int, int] {
			var calls journal
			return since(10*time.Minute, func(context.Context, int) (int, error) {
				return 0, []Kind{Server, TransportFault}[calls.add("")%2]
			}, double)
		}},
		"for ever": {fn: func() Func[int, int] { return since(20*time.Minute, nobody, double) }, opts: []Option{WithFirstAnswer(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := append([]Option{WithConcurrency(8), WithLimits(Limits{RPM: 600}), WithMaxAttempts(50)}, c.opts...)
				if _, sum, err := proved(t.Context(), t, numbers(100), c.fn(), opts...); err != nil || sum.Succeeded != 100 {
					t.Errorf("%v, %+v", err, sum)
				}
			})
		})
	}
}

// A lane that is dead from the start ends its own items; the others are run.
func TestNoAnswerOfOneLaneEndsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, in hinted) (string, error) {
			if LaneFrom(ctx) != "dead" {
				return "", pause(ctx, time.Second)
			}
			_, err := nobody(ctx, 0)
			return "", err
		}
		results, sum, err := proved(t.Context(), t, deadAndWell(200), fn, WithConcurrency(20))
		givenUp(t, err)
		for _, r := range results {
			if dead := r.Item.pool == "dead"; dead != errors.Is(r.Err, ErrNoAnswer) || !dead && r.Err != nil {
				t.Errorf("%+v", r)
			}
		}
		if sum.Succeeded != 100 {
			t.Errorf("%+v", sum)
		}
	})
}

// On a Shared, the first run to draw on a lane that was given up tries it anew, once no
// other run draws on it. An answer to one run counts for the next: that one waits for an
// outage.
func TestSharedTriesAnewWhatWasNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		defer shared.Close()
		on := WithShared(shared)
		for range 2 {
			began := time.Now()
			_, _, err := proved(t.Context(), t, numbers(20), nobody, on)
			givenUp(t, err)
			if took := time.Since(began); took < DefaultFirstAnswer {
				t.Errorf("it was given up after %v", took)
			}
		}
		if _, sum, err := proved(t.Context(), t, numbers(20), double, on); err != nil {
			t.Fatalf("the server is there: %v, %+v", err, sum)
		}
		began := time.Now()
		fn := func(ctx context.Context, i int) (int, error) {
			if time.Since(began) < 10*time.Minute {
				return nobody(ctx, i)
			}
			return i, nil
		}
		if _, sum, err := proved(t.Context(), t, numbers(20), fn, on); err != nil || sum.Succeeded != 20 {
			t.Errorf("an outage: %v, %+v", err, sum)
		}
	})
}

// An earlier run was answered: calls that all break now are an outage, which is waited for,
// and no wrong address. Its memory says so, and so may the caller.
func TestAnsweredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := killed(t, time.Minute, takes(100*time.Millisecond))
		if memory.empty() {
			t.Fatal("nothing was learned")
		}
		for name, before := range map[string]Option{"memory": WithMemory(memory), "said": WithAnsweredBefore()} {
			began := time.Now()
			fn := func(ctx context.Context, i int) (int, error) {
				if time.Since(began) < 20*time.Minute {
					return nobody(ctx, i)
				}
				return i, nil
			}
			if _, sum, err := proved(t.Context(), t, numbers(20), fn, before); err != nil || sum.Succeeded != 20 {
				t.Errorf("%s: %v, %+v", name, err, sum)
			}
		}
	})
}

// A wait that is too long stops the run. The error gives the wait, its end and the server's
// words. A wait that nobody can mean does not stop the run.
func TestTooLongAWaitIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, _, err := proved(t.Context(), t, numbers(3), refuse(2*time.Hour), WithConcurrency(1))
		var w *WaitError
		if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrWaitTooLong) || !errors.As(err, &w) {
			t.Fatalf("%v", err)
		}
		var e *provider.Error
		if w.Wait != 2*time.Hour || !w.Until.Equal(began.Add(2*time.Hour)) || w.Lane != machine.DefaultPool || !errors.As(w, &e) || e.Kind != provider.Throttled {
			t.Errorf("%+v", w)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		refused := false
		fn := func(context.Context, int) (int, error) {
			if refused {
				return 0, nil
			}
			refused = true
			return 0, &provider.Error{Kind: provider.Throttled, RetryAfter: 90 * 24 * time.Hour, HasRetryAfter: true}
		}
		began := time.Now()
		if _, sum, err := proved(t.Context(), t, numbers(3), fn, WithConcurrency(1)); err != nil || sum.Succeeded != 3 || time.Since(began) > time.Minute {
			t.Errorf("%v, %+v, after %v", err, sum, time.Since(began))
		}
	})
}

// What a lane waits at most is the user's to say, and a longer wait is not cut to that: the
// call after it would be refused again.
func TestWaitIsTooLongForItsLane(t *testing.T) {
	for wait, stops := range map[time.Duration]bool{50 * time.Second: false, 2 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			fn := func(context.Context, int) (int, error) {
				if asked++; asked > 1 {
					return 0, nil
				}
				return 0, &provider.Error{Kind: provider.Throttled, RetryAfter: wait, HasRetryAfter: true}
			}
			patience := LaneConfig{Law: Plain, Cooldown: CooldownConfig{MaxDirected: time.Minute, Jitter: -1}}
			_, _, err := proved(t.Context(), t, numbers(3), fn, WithConcurrency(1), WithLaneDefaults(patience))
			var w *WaitError
			switch stopped := errors.As(err, &w); {
			case stopped != stops:
				t.Errorf("%v: %v", wait, err)
			case stopped && (w.Wait != wait || w.Most != time.Minute || asked != 1):
				t.Errorf("%+v, after %d calls", w, asked)
			}
		})
	}
}
