package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// A control pauses the run, resumes it, shows it and drains it.
func TestControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, log := NewControl(), new(journal)
		fn := func(ctx context.Context, i int) (int, error) {
			log.add("")
			return i, pause(ctx, time.Second)
		}
		do := func(at time.Duration, f func(context.Context) error) {
			time.AfterFunc(at, func() {
				if err := f(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		do(2500*time.Millisecond, ctl.Pause)
		do(time.Minute, func(ctx context.Context) error {
			s, err := ctl.Status(ctx, 3)
			if s.Held == 0 || s.Lanes[0].InFlight != 0 {
				t.Errorf("paused: %+v", s)
			}
			return errors.Join(err, ctl.Resume(ctx))
		})
		time.AfterFunc(61500*time.Millisecond, func() { ctl.Drain(); ctl.Drain() })
		begun := time.Now()
		_, sum, err := proved(t.Context(), t, numbers(1<<40), fn, WithControl(ctl), WithConcurrency(1))
		if !errors.Is(err, ErrDrained) || sum.Succeeded != 5 || sum.Elapsed != 62*time.Second {
			t.Errorf("%v %+v", err, sum)
		}
		var at []time.Duration
		for _, x := range log.times {
			at = append(at, x.Sub(begun))
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second, time.Minute, 61 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("calls left at %v, want %v", at, want)
		}
		if _, err := ctl.Status(t.Context(), 1); !errors.Is(err, coordinator.ErrClosed) {
			t.Errorf("status of a run that is over: %v", err)
		}
		if err := errors.Join(ctl.Pause(t.Context()), ctl.Resume(t.Context())); err != nil {
			t.Errorf("a run that is over: %v", err)
		}
	})
}

// A control belongs to one run: a second is refused before it takes anything. One
// that has no run yet waits for it, as long as its context.
func TestControlBelongsToOneRun(t *testing.T) {
	ctl := NewControl()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ctl.Pause(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := ctl.Status(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := proved(t.Context(), t, numbers(1), double, WithControl(ctl)); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), numbers(1), never(t), WithControl(ctl)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// A run that is drained before it begins runs nothing.
func TestDrainedBeforeItBegins(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	for range 500 { // if both told of themselves, it were chance whether the drain or the first items are heard first
		ctl := NewControl()
		ctl.Drain()
		for name, drained := range map[string]Option{"control": WithControl(ctl), "channel": WithDrain(stop)} {
			_, sum, err := proved(t.Context(), t, numbers(1<<40), never(t), WithReadAhead(1), drained)
			if !errors.Is(err, ErrDrained) || sum.Counters.Calls > 0 {
				t.Fatalf("%s: %v %+v", name, err, sum)
			}
		}
	}
}

// A drain when everything has been run already is no error.
func TestDrainWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		_, sum, err := proved(t.Context(), t, numbers(10), takes(time.Minute), WithDrain(stop))
		if err != nil || sum.Succeeded != 10 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// Two runs on one Shared keep one limit together, and take turns.
func TestSharedRunsKeepOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(NewShared(WithPlainLaw(), WithLimits(limiter.Limits{RPM: 60})))(t)
		log, begun := new(journal), time.Now()
		done := make(chan time.Duration, 2)
		for _, name := range []string{"a", "b"} {
			fn := func(_ context.Context, i int) (int, error) { log.add(name); return i, nil }
			go func() {
				_, sum, err := proved(t.Context(), t, numbers(10), fn, WithShared(shared))
				if err != nil || sum.Succeeded != 10 {
					t.Errorf("%s: %v %+v", name, err, sum)
				}
				done <- time.Since(begun)
			}()
		}
		first, second := <-done, <-done
		for i, at := range log.times {
			if at.Sub(begun) != time.Duration(i)*time.Second {
				t.Errorf("call %d left at %v", i, at.Sub(begun))
			}
		}
		if first < 17*time.Second || second != 19*time.Second {
			t.Errorf("over after %v and %v: they did not take turns", first, second)
		}
		shared.Close()
		if _, err := Run(t.Context(), numbers(1), never(t), WithShared(shared)); !errors.Is(err, coordinator.ErrClosed) {
			t.Errorf("a run on a Shared that is closed: %v", err)
		}
		if _, err := shared.Status(t.Context(), 1); !errors.Is(err, coordinator.ErrClosed) {
			t.Error(err)
		}
	})
}

// The end of a call is reported once: amid refusals, failures, drains and releases, the
// coordinator drops no news as double.
func TestEachEndIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(NewShared(WithPlainLaw()))(t)
		defer shared.Close()
		stop, log := make(chan struct{}), new(journal)
		time.AfterFunc(time.Minute, func() { close(stop) })
		fn := func(ctx context.Context, i int) (int, error) {
			switch n := log.add(""); {
			case n%7 == 3:
				return 0, RetryAfter(time.Second, errors.New("busy"))
			case n%5 == 2:
				return 0, errors.New("broken")
			}
			return i, pause(ctx, time.Second)
		}
		_, sum, err := proved(t.Context(), t, numbers(1<<40), fn, WithShared(shared), WithConcurrency(4), WithDrain(stop))
		if !errors.Is(err, ErrDrained) || sum.Counters.HandedOver == 0 || sum.Counters.Released == 0 {
			t.Errorf("%v %+v", err, sum)
		}
		if s, err := shared.Status(t.Context(), 1); err != nil || s.Totals.Dropped != 0 {
			t.Errorf("%v %+v", err, s.Totals)
		}
	})
}

// Closing a Shared drains its runs and waits for them.
func TestSharedCloseDrainsItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(NewShared(WithPlainLaw()))(t)
		done := make(chan error, 1)
		go func() {
			_, _, err := proved(t.Context(), t, numbers(100), takes(time.Minute), WithShared(shared), WithConcurrency(3))
			done <- err
		}()
		synctest.Wait()
		begun := time.Now()
		shared.Close()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrDrained) {
			t.Error(err)
		}
	})
}

// A lane that a person resets flows again at once.
func TestSharedResetLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(NewShared(WithPlainLaw()))(t)
		defer shared.Close()
		log := new(journal)
		fn := func(ctx context.Context, i int) (int, error) {
			if log.add("") == 1 {
				return 0, RetryAfter(10*time.Minute, errors.New("busy"))
			}
			return i, nil
		}
		time.AfterFunc(time.Minute, func() { shared.ResetLane(machine.DefaultPool) })
		_, sum, err := proved(t.Context(), t, numbers(5), fn, WithShared(shared), WithConcurrency(1))
		if err != nil || sum.Elapsed != time.Minute || sum.Succeeded != 5 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// The observer hears each transition in order, a status each period, and the
// summary once, last.
func TestObserverHearsItAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var phases []machine.Phase
		var statuses int
		var last *Summary
		observer := func(e Event) {
			if last != nil {
				t.Error("something came after the summary")
			}
			switch {
			case e.Transition != nil:
				phases = append(phases, e.Transition.To)
			case e.Status != nil:
				statuses++
			default:
				last = e.Summary
			}
		}
		log := new(journal)
		fn := func(ctx context.Context, i int) (int, error) {
			if log.add("") == 1 {
				return 0, RetryAfter(10*time.Second, errors.New("busy"))
			}
			return i, pause(ctx, 30*time.Second)
		}
		_, sum, err := proved(t.Context(), t, numbers(1), fn, exact, WithObserver(observer), WithProgressEvery(2500*time.Millisecond))
		if err != nil || last == nil || *last != sum || statuses != 15 && statuses != 16 {
			t.Errorf("%v, %d statuses in %v, summary %+v", err, statuses, sum.Elapsed, last)
		}
		if want := []machine.Phase{machine.Cooling, machine.Probing, machine.Ramping}; !slices.Equal(phases, want) {
			t.Errorf("%v, want %v", phases, want)
		}
	})
}

// An observer that takes its time slows nothing: each call leaves when it would
// without one, and only the end waits for the last word.
func TestSlowObserverSlowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(Event) { pause(context.Background(), time.Hour) }
		_, sum, err := proved(t.Context(), t, numbers(640), takes(time.Second), WithObserver(slow))
		if err != nil || sum.Elapsed != 10*time.Second {
			t.Errorf("%v, the run took %v", err, sum.Elapsed)
		}
	})
}

// What an observer that is blocked has no room for is dropped and counted, and the
// run goes on.
func TestBlockedObserverMissesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const resets = 400
		shared := must.Get(NewShared(WithPlainLaw()))(t)
		defer shared.Close()
		release, heard := make(chan struct{}), 0
		observer := func(e Event) {
			<-release
			if e.Transition != nil {
				heard++
			}
		}
		fn := func(_ context.Context, i int) (int, error) {
			for range resets {
				shared.ResetLane(machine.DefaultPool)
			}
			return i, nil
		}
		var sum Summary
		for _, err := range Stream(t.Context(), numbers(1), fn, WithShared(shared), WithObserver(observer), WithSummary(&sum)) {
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			close(release) // the result was there although nobody listened
		}
		if sum.Dropped == 0 || heard+int(sum.Dropped) != resets || !sum.Proves() {
			t.Errorf("%d heard and %d dropped of %d", heard, sum.Dropped, resets)
		}
	})
}

// Where nobody listens, nobody was too slow.
func TestNothingIsDroppedWithoutAnObserver(t *testing.T) {
	shared := must.Get(NewShared(WithPlainLaw()))(t)
	defer shared.Close()
	fn := func(_ context.Context, i int) (int, error) {
		for range 400 {
			shared.ResetLane(machine.DefaultPool)
		}
		return i, nil
	}
	if _, sum, err := proved(t.Context(), t, numbers(1), fn, WithShared(shared)); err != nil || sum.Dropped != 0 {
		t.Errorf("%v, %d dropped", err, sum.Dropped)
	}
}
