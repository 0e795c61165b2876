package batch

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// hang is a call that lasts until it is abandoned.
func hang(ctx context.Context, _ int) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// phases brings a run into each phase in which it may be told to end, and says how
// one sees that it is there at the given time.
var phases = []struct {
	name string
	fn   func(calls int) Func[int, int] // told how many calls there were
	opts []Option
	at   time.Duration
	seen func(machine.Status) bool
}{
	{
		name: "feeding", at: 1500 * time.Millisecond,
		opts: []Option{WithReadAhead(5), WithConcurrency(2)},
		seen: func(s machine.Status) bool { return s.Held == 5 && s.Lanes[0].InFlight == 2 },
	},
	{
		name: "queued", at: 90 * time.Second,
		opts: []Option{WithLimits(limiter.Limits{RPM: 1})},
		seen: func(s machine.Status) bool { return s.Held > 0 && s.Lanes[0].InFlight == 0 },
	},
	{
		name: "in flight", at: time.Minute,
		fn:   func(int) Func[int, int] { return hang },
		seen: func(s machine.Status) bool { return s.Lanes[0].InFlight == DefaultConcurrency },
	},
	{
		name: "cooling", at: time.Minute,
		fn:   func(int) Func[int, int] { return refuse(time.Hour / 6) },
		seen: func(s machine.Status) bool { return s.Lanes[0].Phase == machine.Cooling },
	},
	{
		name: "probing", at: time.Minute,
		fn: func(calls int) Func[int, int] {
			if calls <= 3 {
				return refuse(time.Second)
			}
			return hang
		},
		opts: []Option{WithConcurrency(3)},
		seen: func(s machine.Status) bool { return s.Lanes[0].Phase == machine.Probing && s.Lanes[0].InFlight == 1 },
	},
	{
		name: "ramping", at: time.Minute,
		fn: func(calls int) Func[int, int] {
			if calls <= 3 {
				return refuse(time.Second)
			}
			return double
		},
		opts: []Option{WithRamp(0.01, 0.02, time.Hour)},
		seen: func(s machine.Status) bool { return s.Lanes[0].Phase == machine.Ramping && s.Lanes[0].InFlight == 0 },
	},
	{
		name: "delayed", at: 20 * time.Millisecond,
		fn:   func(int) Func[int, int] { return fail(provider.Server) },
		opts: []Option{WithConcurrency(4)},
		seen: func(s machine.Status) bool { return s.Lanes[0].Delayed >= 4 },
	},
	{
		name: "breaker open", at: time.Second,
		fn: func(int) Func[int, int] { return fail(provider.Server) },
		seen: func(s machine.Status) bool {
			return s.Lanes[0].Phase == machine.Cooling && s.Lanes[0].Reason == machine.ByBreaker
		},
	},
}

func refuse(d time.Duration) Func[int, int] { return fail(RetryAfter(d, errors.New("busy"))) }

func fail(err error) Func[int, int] {
	return func(context.Context, int) (int, error) { return 0, err }
}

// eachPhase runs a batch without end into each phase, and there tells it to end.
func eachPhase(t *testing.T, tell func(stop chan struct{}, cancel context.CancelCauseFunc), check func(t *testing.T, calls *journal, stopped time.Time, results []Result[int, int], sum Summary, err error)) {
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				stop, ctl, log := make(chan struct{}), NewControl(), new(journal)
				fn := func(ctx context.Context, i int) (int, error) {
					n := log.add("")
					if p.fn != nil {
						return p.fn(n)(ctx, i)
					}
					return takes(time.Second)(ctx, i)
				}
				var stopped time.Time
				time.AfterFunc(p.at, func() {
					if s, err := ctl.Status(ctx, 1); err != nil || !p.seen(s) {
						t.Errorf("not in the phase: %v %+v", err, s)
					}
					stopped = time.Now()
					tell(stop, cancel)
				})
				opts := append([]Option{exact, WithControl(ctl), WithDrain(stop)}, p.opts...)
				results, sum, err := proved(ctx, t, numbers(1<<40), fn, opts...)
				check(t, log, stopped, results, sum, err)
			})
		})
	}
}

// When its context ends, whatever the run is doing, it returns at that very
// instant with the context's cause and every result that it has; the bubble ends,
// so nothing of it is left.
func TestCancelInEachPhase(t *testing.T) {
	enough := errors.New("enough")
	eachPhase(t, func(_ chan struct{}, cancel context.CancelCauseFunc) { cancel(enough) },
		func(t *testing.T, _ *journal, stopped time.Time, results []Result[int, int], sum Summary, err error) {
			if !errors.Is(err, enough) || !time.Now().Equal(stopped) {
				t.Errorf("%v, %v late", err, time.Since(stopped))
			}
			if sum.NotRun == 0 || len(results) != sum.Items() {
				t.Errorf("%d results, %+v", len(results), sum)
			}
		})
}

// When it is drained, whatever it is doing, no further call leaves, and it returns
// once those in flight have ended.
func TestDrainInEachPhase(t *testing.T) {
	eachPhase(t, func(stop chan struct{}, cancel context.CancelCauseFunc) {
		close(stop)
		time.AfterFunc(time.Hour, func() { cancel(nil) }) // for calls that end in no other way
	}, func(t *testing.T, calls *journal, stopped time.Time, _ []Result[int, int], sum Summary, err error) {
		if !errors.Is(err, ErrDrained) && !errors.Is(err, context.Canceled) || sum.NotRun == 0 {
			t.Errorf("%v %+v", err, sum)
		}
		for _, at := range calls.times {
			if at.After(stopped) {
				t.Errorf("a call left %v after the drain", at.Sub(stopped))
			}
		}
		if late := time.Since(stopped); late > DefaultAttemptTimeout {
			t.Errorf("it returned %v after the drain", late)
		}
	})
}

// Draining, a run whose context ends returns at once.
func TestCancelWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		time.AfterFunc(time.Minute, cancel)
		_, sum, err := proved(ctx, t, numbers(1<<40), hang, WithDrain(stop), WithConcurrency(4))
		if !errors.Is(err, context.Canceled) || sum.Elapsed != time.Minute || sum.Counters.Calls != 4 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// A run whose context has ended before it begins takes nothing and calls nothing.
func TestCancelledBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	shared := newShared(t, WithPlainLaw())
	defer shared.Close()
	for range 2000 { // whether the coordinator's answer or the end would be seen first is chance
		results, err := Run(ctx, numbers(1<<40), never(t), WithShared(shared))
		if !errors.Is(err, context.Canceled) || len(results) > 0 {
			t.Fatal(err, results)
		}
	}
}

// A run that has lost its last lane can still be cancelled at once: an item that
// was read before may wait on a lane of its own.
func TestCancelWhenStranded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		items := func(yield func(hinted) bool) {
			for _, pool := range []string{"dead", "dead", "late"} {
				if !yield(hinted{pool: pool}) {
					return
				}
				synctest.Wait() // offered by itself
			}
		}
		fn := func(ctx context.Context, in hinted) (int, error) {
			if in.pool == "dead" {
				pause(ctx, time.Second)
				return 0, provider.Unauthorized
			}
			return 0, RetryAfter(10*time.Minute, errors.New("busy"))
		}
		// One flies, one waits, and one is at the door when the lane stops.
		narrow := WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Window: 1})
		time.AfterFunc(time.Minute, cancel)
		_, sum, err := proved(ctx, t, items, fn, narrow, WithConcurrency(2), WithReadAhead(1))
		if !errors.Is(err, ErrStopped) || sum.Elapsed != time.Minute || sum.Counters.Calls != 2 {
			t.Errorf("%v after %v: %+v", err, sum.Elapsed, sum.Counters)
		}
	})
}

// A call that succeeds although its run was abandoned is a success.
func TestAnswerAfterCancelIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		fn := func(context.Context, int) (int, error) {
			cancel()
			synctest.Wait()
			return 7, nil
		}
		results, sum, err := proved(ctx, t, numbers(1), fn)
		if err != nil && !errors.Is(err, context.Canceled) || sum.Succeeded != 1 || results[0].Value != 7 {
			t.Errorf("%v %+v", err, results)
		}
	})
}

// leaving are the ways out of a range over a Stream.
var leaving = map[string]func(iter.Seq2[Result[int, int], error]){
	"break": func(seq iter.Seq2[Result[int, int], error]) {
		n := 0
		for range seq {
			if n++; n == 3 {
				break
			}
		}
	},
	"return": func(seq iter.Seq2[Result[int, int], error]) {
		for range seq {
			return
		}
	},
	"panic": func(seq iter.Seq2[Result[int, int], error]) {
		defer func() {
			if v := recover(); v != "out" {
				panic(v)
			}
		}()
		for range seq {
			panic("out")
		}
	},
	"Goexit": func(seq iter.Seq2[Result[int, int], error]) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range seq {
				runtime.Goexit()
			}
		}()
		<-done
	},
	"stop": func(seq iter.Seq2[Result[int, int], error]) {
		next, stop := iter.Pull2(seq)
		next()
		stop()
	},
}

// However the loop is left, at that instant the calls in flight are abandoned and
// nothing of the run is running; and its summary is written and proves.
func TestLeavingTheRange(t *testing.T) {
	for name, leave := range leaving {
		for _, order := range []Option{{}, WithInputOrder()} {
			t.Run(name+order.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var sum Summary
					running := make(chan int, DefaultConcurrency)
					fn := func(ctx context.Context, i int) (int, error) {
						running <- i
						defer func() { <-running }()
						if i%8 == 7 {
							return hang(ctx, i)
						}
						return i, pause(ctx, time.Second)
					}
					begun := time.Now()
					leave(Stream(t.Context(), numbers(1<<40), fn, order, WithPlainLaw(), WithSummary(&sum)))
					if len(running) != 0 || !sum.Proves() || sum.Items() == 0 {
						t.Errorf("%d calls still run, %+v", len(running), sum)
					}
					if took := time.Since(begun); took != time.Second {
						t.Errorf("it was left after 1 s and returned after %v", took)
					}
				})
			})
		}
	}
}

// Each range over one Stream is a run of its own.
func TestStreamCanBeRangedOverAgain(t *testing.T) {
	seq := Stream(t.Context(), numbers(10), double)
	for range 2 {
		n := 0
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 10 {
			t.Errorf("%d results", n)
		}
	}
}

// An error of the run comes last, alone, and once.
func TestStreamYieldsTheErrorLast(t *testing.T) {
	n, errs := 0, 0
	for r, err := range Stream(t.Context(), numbers(10), fail(provider.Unauthorized), WithConcurrency(1)) {
		if err != nil {
			errs++
			if !reflect.DeepEqual(r, Result[int, int]{}) {
				t.Errorf("a result came with it: %+v", r)
			}
			continue
		}
		if errs > 0 {
			t.Error("a result came after it")
		}
		n++
	}
	if n == 0 || errs != 1 {
		t.Errorf("%d results, %d errors", n, errs)
	}
}

// A summary proves only if both are even: what the machine counted, and the results.
func TestSummaryProvesBoth(t *testing.T) {
	even := machine.Counters{Offered: 2, Settled: 2, Calls: 2}
	for _, c := range []struct {
		sum  Summary
		want bool
	}{
		{Summary{Succeeded: 2, Counters: even}, true},
		{Summary{Succeeded: 1, Counters: even}, false},
		{Summary{Succeeded: 2, Counters: machine.Counters{Offered: 2, Settled: 2, Calls: 3}}, false},
	} {
		if c.sum.Proves() != c.want {
			t.Errorf("%+v proves: %v", c.sum, !c.want)
		}
	}
}
