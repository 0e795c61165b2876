package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// stale is a summary of another run, which must not be taken for this one's.
var stale = Summary{Succeeded: 7, Elapsed: time.Hour}

// However early a run ends, it has a summary that proves, and its observer hears of the
// end, once. Only where its options cannot be meant is it no run, and the observer hears
// nothing.
func TestRunThatCannotBegin(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	closed, open := newShared(t, WithPlainLaw()), newShared(t, WithPlainLaw())
	closed.Close()
	defer open.Close()
	used := NewControl()
	if _, err := Run(t.Context(), numbers(0), double, WithControl(used)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		opt  Option
		want error
		told int
	}{
		"context":           {over, Option{}, enough, 1},
		"context on Shared": {over, WithShared(open), enough, 1},
		"context, closed":   {over, WithShared(closed), enough, 1},
		"closed Shared":     {t.Context(), WithShared(closed), ErrClosed, 1},
		"options":           {t.Context(), WithConcurrency(0), ErrConfig, 0},
		"control":           {t.Context(), WithControl(used), ErrConfig, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sum, told := stale, 0
			observer := func(e Event) {
				if told++; e.Summary == nil || *e.Summary != (Summary{Elapsed: e.Summary.Elapsed, At: e.Summary.At}) {
					t.Errorf("%+v", e)
				}
			}
			results, err := Run(c.ctx, numbers(5), never(t), c.opt, WithSummary(&sum), WithObserver(observer))
			if !errors.Is(err, c.want) || len(results) > 0 || told != c.told {
				t.Errorf("%v %v, the observer was told %d times", err, results, told)
			}
			if sum != (Summary{Elapsed: sum.Elapsed, At: sum.At}) || sum.Elapsed == stale.Elapsed || sum.At.IsZero() != (c.told == 0) || !sum.Proves() {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// An observer may panic at the summary of a run that could not begin. The error then
// reports the panic and the reason.
func TestPanicInTheObserverOfARunThatCannotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, numbers(5), never(t), WithObserver(func(Event) { explode() }))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrObserver) {
		t.Error(err)
	}
}

// A context that ends while the coordinator is asked leaves nothing behind, the goroutine
// that saves what is learned included.
func TestRunThatCannotBeginDoesNotWaitForASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		save := func(Memory) error { t.Error("there was nothing to save"); return nil }
		r := &run[int, int]{config: configure([]Option{WithMemorySaver(save)}), over: make(chan Summary, 1)}
		ctx, cancel := context.WithCancelCause(t.Context())
		r.abort = cancel
		if err := r.open(ctx); err != nil {
			t.Fatal(err)
		}
		r.session.EndInput() // as Open does for one who has left
		r.release()
		if err := r.unbegun(context.Canceled); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
