package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The last few items of a run open no breaker. They outlive an outage of half a minute, and
// fail after some 35 s in a longer one. Refused connections fail no item.
func TestOutageMeetsTheLastItems(t *testing.T) {
	few := blameWorld{items: 8, atOnce: 2, answer: time.Second}
	for name, c := range map[string]struct {
		ends        time.Duration
		unsent      bool
		failed      int
		least, most time.Duration
	}{
		"half a minute":       {32 * time.Second, false, 0, 32 * time.Second, 50 * time.Second},
		"ten minutes":         {602 * time.Second, false, 7, 35 * time.Second, 50 * time.Second},
		"refused connections": {602 * time.Second, true, 0, 602 * time.Second, 630 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := few
			w.outages, w.unsent = []outage{{1200 * time.Millisecond, c.ends}}, c.unsent
			w.drains = true
			for seed := range uint64(5) {
				w.seed = seed
				seen := w.run(t)
				t.Logf("%v, %d failed, %d openings, %v", seen.took, seen.goodFailed, seen.openings, seen.err)
				if seen.took < c.least || seen.took > c.most || seen.err != nil || seen.notRun > 0 {
					t.Errorf("it took %v and ended with %v, %d were not run", seen.took, seen.err, seen.notRun)
				}
				if c.failed == 0 && seen.goodFailed > 0 || c.failed > 0 && (seen.goodFailed > c.failed || seen.goodFailed < c.failed-2) {
					t.Errorf("%d good items failed, want about %d", seen.goodFailed, c.failed)
				}
			}
		})
	}
}

// Ten or more last items that all break look like an outage. The run stops after its patience
// and leaves them to a later run. WithKeepGoing names them instead.
func TestManyLastItemsLookLikeAnOutage(t *testing.T) {
	w := blameWorld{items: 200, last: 40, atOnce: 16, answer: time.Second, seed: 1, options: []Option{WithOutagePatience(time.Hour)}}
	seen := w.run(t)
	if !errors.Is(seen.err, ErrStopped) || !errors.Is(seen.err, ErrOutage) || seen.notRun != 40 || seen.goodFailed+seen.named > 0 {
		t.Errorf("%v: %d not run, %d failed", seen.err, seen.notRun, seen.goodFailed+seen.named)
	}
	if seen.took < time.Hour || seen.took > time.Hour+time.Minute {
		t.Errorf("it stopped after %v", seen.took)
	}
	w.options = append(w.options, WithKeepGoing())
	seen = w.run(t)
	t.Logf("%v, %.2f calls, at most %d", seen.took, seen.mean, seen.most)
	if seen.err != nil || seen.named != 40 || seen.goodFailed > 0 || seen.took > 10*time.Minute || seen.most > 6 {
		t.Errorf("%v: %d of 40 named in %v, at most %d calls each", seen.err, seen.named, seen.took, seen.most)
	}
}

// WithKeepGoing names all items of a resumed run with nothing but poison.
func TestKeepGoingNamesWhatIsLeft(t *testing.T) {
	w := blameWorld{items: 40, last: 40, atOnce: 16, answer: time.Second, seed: 1}
	for name, before := range map[string]Option{"answered before": WithAnsweredBefore(), "no bound on the first answer": WithFirstAnswer(0)} {
		t.Run(name, func(t *testing.T) {
			w.options = []Option{before, WithKeepGoing()}
			seen := w.run(t)
			if seen.err != nil || seen.named != 40 || seen.took > 10*time.Minute {
				t.Errorf("%v: %d of 40 named in %v", seen.err, seen.named, seen.took)
			}
		})
	}
}

// A draining server answers old calls and breaks new ones. The old answers are no witnesses, so
// the outage fails no item.
func TestOldAnswersAreNoWitnesses(t *testing.T) {
	w := blameWorld{items: 1000, answer: 20 * time.Second, drains: true, outages: []outage{{60 * time.Second, 360 * time.Second}}}
	f := w.figures(t, 3)
	f.allNamed(t, 20*time.Minute)
	if f.openings == 0 {
		t.Error("the breaker did not open")
	}
}

// Several failures of an item between two witnesses are one attempt. So nearly all items
// outlive a server that is up for 3 s and down for 10 s in turns.
func TestFlappingServer(t *testing.T) {
	w := blameWorld{items: 5000, answer: 2 * time.Second, flap: 300 * time.Second}
	f := w.figures(t, 2)
	if f.err != nil || f.notRun > 0 || f.goodFailed > 7*f.worlds || f.took > 15*time.Minute {
		t.Errorf("%v: %d items failed and %d were not run in %d worlds of %v", f.err, f.goodFailed, f.notRun, f.worlds, f.took)
	}
}

// Five outages of half a minute, one after the other, fail no good item.
func TestFiveOutages(t *testing.T) {
	w := blameWorld{items: 4000, poison: 0.01, answer: 2 * time.Second}
	for at := 10 * time.Second; len(w.outages) < 5; at += 40 * time.Second {
		w.outages = append(w.outages, outage{at, at + 30*time.Second})
	}
	f := w.figures(t, 2)
	f.allNamed(t, 400*time.Second)
	f.calls(t, 6, 11) // an outage may cost each a probe
}

// Three calls in five that break by chance are no outage: no breaker opens. About one item in
// thirteen breaks five times and fails.
func TestChanceIsNoOutage(t *testing.T) {
	f := blameWorld{items: 2000, answer: 2 * time.Second, chance: 0.6}.figures(t, 2)
	f.opensNothing(t)
	if share := float64(f.goodFailed) / float64(2000*f.worlds); f.err != nil || f.notRun > 0 || share > 0.1 {
		t.Errorf("%v: %.1f %% of the items failed, %d were not run", f.err, 100*share, f.notRun)
	}
}

// outages are the ways in which a server is down.
var outages = map[string]error{
	"broken":              errBroken,
	"reset":               errReset,
	"nobody there":        errNobody,
	"overloaded":          &Error{Kind: Overloaded, Status: 503, Message: "the server is busy"},
	"throttled":           &Error{Kind: Throttled, Status: 429, Message: "slow down"},
	"throttled, by waits": &Error{Kind: Throttled, Status: 429, HasRetryAfter: true, RetryAfter: 40 * time.Second},
}

// downFrom answers within a second, and fails with err in the time given.
func downFrom(begins, ends time.Duration, err error) Func[int, int] {
	began := time.Now()
	return func(ctx context.Context, i int) (int, error) {
		if at := time.Since(began); at >= begins && at < ends {
			if e := pause(ctx, 10*time.Millisecond); e != nil {
				return 0, e
			}
			return 0, err
		}
		return i, pause(ctx, time.Second)
	}
}

const forEver = 1000 * time.Hour

// A lane stops once nothing was answered for the patience, in whatever way the server is down.
// No item has failed, and the error has the beginning of the outage.
func TestOutageEndsWithPatience(t *testing.T) {
	const patience = 20 * time.Minute // overload itself ends items after 30
	for name, down := range outages {
		for law, opts := range laws {
			t.Run(name+", "+law, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					results, sum, err := judged(t.Context(), t, numbers(500), downFrom(10*time.Second, forEver, down),
						append([]Option{WithConcurrency(16), WithOutagePatience(patience)}, opts...)...)
					took := time.Since(began)
					var o *OutageError
					var fault *Error
					if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrOutage) || !errors.As(err, &o) || !errors.As(err, &fault) || !errors.Is(err, down) {
						t.Fatalf("after %v: %v", took, err)
					}
					if since := o.Since.Sub(began); o.Lane != DefaultLane || since < 9*time.Second || since > 13*time.Second || o.For < patience || took-since-o.For > 2*time.Second {
						t.Errorf("after %v: lane %q, since %v, for %v", took, o.Lane, since, o.For)
					}
					if took > patience+3*time.Minute || sum.Failed > 0 || sum.Succeeded == 0 || o.Waiting < 1 {
						t.Errorf("after %v: %+v, %d wait", took, sum, o.Waiting)
					}
					for _, r := range results {
						if r.Err != nil && (!errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, ErrOutage) || !errors.As(r.Err, &o)) {
							t.Fatalf("item %d: %v", r.Index, r.Err)
						}
					}
				})
			})
		}
	}
}

// A run waits for the end of an outage that is shorter than the patience. The default is six
// hours, and 0 waits for ever.
func TestOutageWithinPatienceIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		lasts  time.Duration
		opts   []Option
		stops  bool
		before bool
		down   error // else it breaks
	}{
		"below six hours":        {lasts: DefaultOutagePatience - time.Minute},
		"over six hours":         {lasts: DefaultOutagePatience + time.Minute, stops: true},
		"a day":                  {lasts: 24 * time.Hour, opts: []Option{WithOutagePatience(0)}},
		"from the start":         {lasts: 5 * time.Hour, opts: []Option{WithAnsweredBefore()}, before: true},
		"from the start, longer": {lasts: 7 * time.Hour, opts: []Option{WithAnsweredBefore()}, before: true, stops: true},
		"the last option counts": {lasts: time.Hour, opts: []Option{WithOutagePatience(time.Second), WithOutagePatience(2 * time.Hour)}},
		"twenty seconds":         {lasts: time.Minute, opts: []Option{WithAnsweredBefore(), WithOutagePatience(20 * time.Second)}, before: true, stops: true},
		"two hours of 503":       {lasts: 2 * time.Hour, down: outages["overloaded"]},
		"two hours of 429":       {lasts: 2 * time.Hour, down: outages["throttled, by waits"]},
		"one nanosecond":         {lasts: time.Minute, opts: []Option{WithOutagePatience(1)}, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begins := 5 * time.Second
				if c.before {
					begins = 0
				}
				down := cmp.Or(c.down, error(errBroken))
				began := time.Now()
				_, sum, err := judged(t.Context(), t, numbers(300), downFrom(begins, begins+c.lasts, down), append(c.opts, WithConcurrency(16))...)
				took := time.Since(began)
				if stopped := errors.Is(err, ErrOutage); stopped != c.stops || !stopped && (err != nil || sum.Succeeded != 300) || sum.Failed > 0 {
					t.Errorf("after %v: %v, %+v", took, err, sum)
				}
				if !c.stops && took > begins+c.lasts+5*time.Minute {
					t.Errorf("the outage was over after %v, and the run after %v", begins+c.lasts, took)
				}
			})
		})
	}
}

// A later run does the items that an outage has left, and none of the others.
func TestOutageIsResumable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := downFrom(10*time.Second, 30*time.Minute, errBroken)
		results, _, err := judged(t.Context(), t, numbers(500), fn, WithConcurrency(16), WithOutagePatience(10*time.Minute))
		if !errors.Is(err, ErrOutage) {
			t.Fatal(err)
		}
		done := map[int]bool{}
		for _, r := range results {
			done[r.Item] = r.Err == nil
		}
		left := func(yield func(int) bool) {
			for i := range 500 {
				if !done[i] && !yield(i) {
					return
				}
			}
		}
		again, sum, err := judged(t.Context(), t, left, fn, WithConcurrency(16), WithAnsweredBefore())
		if err != nil || sum.Succeeded != len(again) || sum.Failed > 0 {
			t.Errorf("%v, %+v", err, sum)
		}
		for _, r := range again {
			if done[r.Item] {
				t.Errorf("item %d was run twice", r.Item)
			}
			done[r.Item] = r.Err == nil
		}
		if len(done) != 500 {
			t.Errorf("%d items of 500 are done", len(done))
		}
	})
}

// The text of an OutageError names the lane, the duration, the waiting items and the cause.
func TestOutageSaysWhatItIs(t *testing.T) {
	e := error(&OutageError{Lane: "eu", Since: time.Unix(0, 0), For: 90 * time.Minute, Waiting: 17, Cause: errBroken})
	for _, want := range []string{"eu", "1h30m", "17 items", "internal error"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q does not tell %q", e, want)
		}
	}
	if wrapped := fmt.Errorf("x: %w", e); !errors.Is(wrapped, ErrOutage) || !errors.Is(wrapped, Server) || errors.Is(wrapped, ErrAlike) {
		t.Error(wrapped)
	}
	if none := (&OutageError{Lane: "eu"}); none.Error() == "" || errors.Unwrap(none) != nil {
		t.Errorf("%v, %v", none, errors.Unwrap(none))
	}
}

// A breaker that opens takes back the failures that led to it. An item that meets the beginning
// of four outages may break four times more.
func TestItemThatMeetsFourOutages(t *testing.T) {
	for law, opts := range laws {
		t.Run(law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log journal
				var until time.Time // the end of the outage; log.mu guards it
				down := func() bool {
					log.mu.Lock()
					defer log.mu.Unlock()
					return time.Now().Before(until)
				}
				fn := func(ctx context.Context, i int) (int, error) {
					switch {
					case down():
						_ = pause(ctx, 10*time.Millisecond)
						return 0, errBroken
					case i == 0 && log.add("") > 4:
						if err := pause(ctx, time.Second); err != nil || log.lanes[""] > 8 {
							return i, err
						}
						return 0, errReset
					case i == 0:
						_ = pause(ctx, 5*time.Second)
						log.mu.Lock()
						until = time.Now().Add(time.Minute)
						log.mu.Unlock()
						return 0, errBroken
					}
					if err := pause(ctx, time.Second); err != nil || !down() {
						return i, err
					}
					return 0, errBroken
				}
				results, sum, err := judged(t.Context(), t, numbers(4000), fn, append([]Option{WithConcurrency(16)}, opts...)...)
				if err != nil || sum.Failed > 0 || log.lanes[""] != 9 {
					t.Errorf("%v, %+v; after %d calls the item has %v: %+v", err, sum, log.lanes[""], results[0].Err, results[0].Failures)
				}
			})
		})
	}
}

// A lane that is refused from its first call on is waited for like one that was answered. A lane
// that only breaks is given up earlier, as nobody may be there.
func TestOutageFromTheFirstCall(t *testing.T) {
	for name, down := range outages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, sum, err := judged(t.Context(), t, numbers(100), downFrom(0, forEver, down), WithConcurrency(16), WithOutagePatience(20*time.Minute))
				took, refused := time.Since(began), errors.Is(down, Overloaded) || errors.Is(down, Throttled)
				switch {
				case !errors.Is(err, ErrStopped) || !errors.Is(err, down) || sum.Failed+sum.Succeeded > 0:
					t.Errorf("after %v: %v, %+v", took, err, sum)
				case refused && (!errors.Is(err, ErrOutage) || took < 20*time.Minute || took > 23*time.Minute):
					t.Errorf("after %v: %v", took, err)
				case !refused && (!errors.Is(err, ErrNoAnswer) || took > time.Minute):
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}
