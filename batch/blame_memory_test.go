package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// keyed makes each number its own key.
func keyed() Option { return WithKeyOf(strconv.Itoa) }

// keys are the keys of the remembered items, in order.
func (m Memory) keys() []string { return slices.Sorted(maps.Keys(m.Items)) }

// poisoned breaks the calls of some items at once, and answers the others within a second.
func poisoned(bad ...int) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		if slices.Contains(bad, i) {
			return 0, errReset
		}
		return i, pause(ctx, time.Second)
	}
}

// A memory has the items that have failed and have not ended. Items that ended, that were
// never called, or that have no key are not in it.
func TestMemoryHasTheItemsThatHaveFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved shelf
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fn := func(ctx context.Context, i int) (int, error) {
			switch n := CallFrom(ctx); {
			case i == 1:
				return 0, wrongItem(i)
			case i == 2 && n == 1, i == 3, i == 4:
				return 0, errReset
			case i == 5 && n == 1:
				return 0, RetryAfter(time.Millisecond, errBroken)
			case i == 5:
				return 0, pause(ctx, time.Hour)
			case i == 99:
				cancel()
			}
			return i, pause(ctx, time.Second)
		}
		_, _, err := judged(ctx, t, numbers(100), fn, WithConcurrency(4), WithPlainLaw(), WithMaxAttempts(50), WithBackoff(10*time.Second, 10*time.Second),
			WithMemorySaver(saved.save), WithKeyOf(func(i int) string {
				if i == 4 {
					return ""
				}
				return "no. " + strconv.Itoa(i)
			}))
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if m := saved.read(t); !slices.Equal(m.keys(), []string{"no. 3"}) || m.Items["no. 3"].Failures < 1 {
			t.Errorf("%+v", m.Items)
		}
	})
}

// A resumed item keeps the attempts that it has used up. A doubt stays a doubt: the first
// witness makes all of them one attempt.
func TestItemsGoOnWithTheirAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		known ItemMemory // zero: nothing is
		calls int        // until it fails
		lane  bool       // as much is known of its lane as an earlier run has learned
	}{
		"nothing known":      {ItemMemory{}, 5, false},
		"one":                {ItemMemory{Failures: 1}, 4, false},
		"four":               {ItemMemory{Failures: 4}, 1, false},
		"all of them":        {ItemMemory{Failures: 5}, 1, false},
		"more than may be":   {ItemMemory{Failures: 1000}, 1, false},
		"one in doubt":       {ItemMemory{Failures: 1, Doubts: 1}, 4, false},
		"four, one in doubt": {ItemMemory{Failures: 4, Doubts: 1}, 1, false},
		"four in doubt":      {ItemMemory{Failures: 4, Doubts: 4}, 5, false},
		"and of the lane":    {ItemMemory{Failures: 4}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := Memory{Items: map[string]ItemMemory{"elsewhere": {Failures: 3}}}
				if c.lane {
					m.Lanes = answeredBefore(t).Lanes
				}
				if c.known != (ItemMemory{}) {
					m.Items["7"] = c.known
				}
				results, sum, err := judged(t.Context(), t, numbers(400), poisoned(7), WithConcurrency(4), WithMemory(m), keyed())
				if r := results[7]; err != nil || sum.Failed != 1 || r.Err == nil || r.Calls < c.calls || r.Calls > c.calls+1 {
					t.Errorf("%v: %d calls, want %d; %v", err, r.Calls, c.calls, r.Err)
				}
			})
		})
	}
}

// A breaker that opens takes back the doubts of an earlier run, too. An item that meets a second
// outage does not fail for it.
func TestDoubtsOfAnEarlierRunAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Memory{Items: map[string]ItemMemory{}}
		for i := range 12 {
			m.Items[strconv.Itoa(i)] = ItemMemory{Failures: 4, Doubts: 4}
		}
		fn := downFrom(0, 10*time.Minute, errBroken)
		_, sum, err := judged(t.Context(), t, numbers(12), fn, WithConcurrency(12), WithMemory(m), keyed(), WithAnsweredBefore())
		if err != nil || sum.Succeeded != 12 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// A run that is killed every twenty seconds and resumed names all poison and fails no good
// item, also in an outage. Poison has few calls more than in one run.
func TestKilledAndResumedRunIsAsGoodAsOne(t *testing.T) {
	for name, outages := range map[string][]outage{"well": nil, "outage": {{30 * time.Second, 330 * time.Second}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := thousands(0.1)
				w.items, w.seed, w.outages, w.atOnce = 1000, 1, outages, 64
				s, saved := newBlameServer(w), new(shelf)
				done, named, runs := map[int]bool{}, 0, 0
				for ; len(done) < w.items && runs < 200; runs++ {
					var m Memory
					opts := []Option{WithMemorySaver(saved.save), keyed()}
					if runs > 0 {
						m = saved.read(t)
						opts = append(opts, WithMemory(m))
					}
					ctx, kill := context.WithTimeout(t.Context(), 20*time.Second)
					left := func(yield func(int) bool) {
						for i := range w.items {
							if !done[i] && !yield(i) {
								return
							}
						}
					}
					for r, err := range Stream(ctx, left, s.call, opts...) {
						switch {
						case err != nil && !errors.Is(err, context.DeadlineExceeded):
							t.Fatalf("run %d: %v", runs, err)
						case err != nil || errors.Is(r.Err, ErrNotRun):
						case r.Err != nil && !s.bad[r.Item]:
							t.Errorf("run %d: item %d is good and failed: %v", runs, r.Item, r.Failures)
							done[r.Item] = true
						default:
							if done[r.Item] = true; r.Err != nil {
								named++
							}
						}
					}
					kill()
				}
				var seen blameSeen
				seen.count(t, s)
				t.Logf("%d runs, %v, %d of %d named, %.2f calls, at most %d", runs, time.Since(s.began), named, seen.poison, seen.mean, seen.most)
				if len(done) < w.items || named != seen.poison || seen.mean > 7.5 || seen.most > 12 {
					t.Errorf("%d of %d items have ended in %d runs, %d of %d poison items were named in %.2f calls, at most %d",
						len(done), w.items, runs, named, seen.poison, seen.mean, seen.most)
				}
			})
		})
	}
}

// The last memory of a run has the failed items that it left, in whatever way it ended early.
func TestEndedRunsLeaveAMemory(t *testing.T) {
	for _, end := range []string{"drained", "cancelled", "stopped", "too many failures", "left"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var saved shelf
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				drain := make(chan struct{})
				fn := func(ctx context.Context, i int) (int, error) {
					switch {
					case i == 3 || i == 4:
						return 0, errReset
					case i < 20:
						return i, pause(ctx, time.Second)
					case end == "stopped":
						return 0, &Error{Kind: QuotaExhausted, Status: 429, Message: "used up"}
					case end == "drained" && i == 20:
						close(drain)
					case end == "cancelled" && i == 20:
						cancel()
					case end == "too many failures" && i == 20:
						return 0, wrongItem(i)
					}
					return i, pause(ctx, time.Second)
				}
				opts := []Option{WithConcurrency(4), WithPlainLaw(), WithBackoff(time.Hour, time.Hour), keyed(), WithMemorySaver(saved.save), WithDrain(drain)}
				if end == "too many failures" {
					opts = append(opts, WithMaxFailures(1))
				}
				for r, err := range Stream(ctx, numbers(1000), fn, opts...) {
					if err == nil && end == "left" && r.Index == 20 {
						break
					}
				}
				if m := saved.read(t); !slices.Equal(m.keys(), []string{"3", "4"}) || m.Items["3"].Failures != 1 || m.Items["4"].Failures != 1 {
					t.Errorf("%+v", m.Items)
				}
			})
		})
	}
}

// A memory has at most 10,000 items, those of an earlier run included.
func TestMemoryOfItemsIsBounded(t *testing.T) {
	const many = machine.MostItemMemories + 2000
	known := Memory{Items: map[string]ItemMemory{}}
	for i := range many {
		known.Items[fmt.Sprint("earlier ", i)] = ItemMemory{Failures: 1}
	}
	for name, m := range map[string]Memory{"anew": {}, "resumed": known} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var saved shelf
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				never, ctl := BreakerConfig{Consecutive: -1}, NewControl()
				time.AfterFunc(2*time.Second, func() {
					if got, err := ctl.Save(ctx); err != nil || len(got.Items) != machine.MostItemMemories {
						t.Errorf("%v: %d items are remembered", err, len(got.Items))
					}
				})
				_, _, err := judged(ctx, t, numbers(many), fail(errReset), WithConcurrency(many), WithReadAhead(many), WithBackoff(time.Hour, time.Hour), WithFirstAnswer(0),
					WithLaneDefaults(LaneConfig{Law: Plain, Breaker: never}), keyed(), WithMemory(m), WithMemorySaver(saved.save), WithControl(ctl))
				got := saved.read(t)
				if !errors.Is(err, context.DeadlineExceeded) || len(got.Items) != machine.MostItemMemories {
					t.Errorf("%v: %d items are remembered", err, len(got.Items))
				}
			})
		})
	}
}

// A memory keeps items of an earlier run that this run was not offered. Items that have ended
// leave it.
func TestMemoryOfOtherItemsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved shelf
		m := Memory{Items: map[string]ItemMemory{"3": {Failures: 2}, "5": {Failures: 4}, "900": {Failures: 3, Doubts: 1}}}
		if _, sum, err := judged(t.Context(), t, numbers(50), poisoned(5), WithConcurrency(4), keyed(), WithMemory(m), WithMemorySaver(saved.save)); err != nil || sum.Failed != 1 {
			t.Fatalf("%v, %+v", err, sum)
		}
		if got := saved.read(t).Items; len(got) != 1 || got["900"] != (ItemMemory{Failures: 3, Doubts: 1}) {
			t.Errorf("%+v", got)
		}
	})
}

// Control.Save and Shared.Save return the items that failed where WithMemory is given, also
// with the empty memory of a first run.
func TestSaveHasItems(t *testing.T) {
	for _, how := range []string{"Control", "Shared"} {
		for name, m := range map[string]Memory{"empty": {}, "not empty": {Items: map[string]ItemMemory{"x": {Failures: 1}}}} {
			t.Run(how+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctl, opts := NewControl(), []Option{keyed(), WithConcurrency(4), WithBackoff(time.Hour, time.Hour)}
					save := ctl.Save
					if how == "Shared" {
						shared := newShared(t, WithMemory(m), WithPlainLaw(), WithBackoff(time.Hour, time.Hour))
						defer shared.Close()
						opts, save = []Option{keyed(), WithConcurrency(4), WithShared(shared)}, shared.Save
					} else {
						opts = append(opts, WithControl(ctl), WithMemory(m), WithPlainLaw())
					}
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(30*time.Second, func() {
						defer cancel()
						got, err := save(t.Context())
						if k, ok := got.Items["3"]; err != nil || !ok || k.Failures != 1 {
							t.Errorf("%v, %+v", err, got.Items)
						}
					})
					if _, _, err := judged(ctx, t, numbers(1000), poisoned(3), opts...); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A named is an item with a key of its own.
type named struct{ no int }

func (n named) ItemKey() string { return "item " + strconv.Itoa(n.no) }

// The key of an item is that of its method, unless WithKeyOf gives another.
func TestKeysOfItems(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		want []string
	}{
		"own method":    {nil, []string{"item 3"}},
		"option":        {[]Option{WithKeyOf(func(n named) string { return fmt.Sprint(n.no * 10) })}, []string{"30"}},
		"one key":       {[]Option{WithKeyOf(func(named) string { return "same" })}, []string{"same"}},
		"no key at all": {[]Option{WithKeyOf(func(named) string { return "" })}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var saved shelf
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				items := func(yield func(named) bool) {
					for i := range 1000 {
						if !yield(named{i}) {
							return
						}
					}
				}
				fn := func(ctx context.Context, n named) (int, error) { return poisoned(3)(ctx, n.no) }
				opts := append(c.opts, WithConcurrency(4), WithPlainLaw(), WithBackoff(time.Hour, time.Hour), WithMemorySaver(saved.save))
				if _, _, err := judged(ctx, t, items, fn, opts...); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if m := saved.read(t); !slices.Equal(m.keys(), c.want) {
					t.Errorf("%+v", m.Items)
				}
			})
		})
	}
}

// A resumed run probes the server with an item that never failed, and not with those that have
// failed before.
func TestResumedRunProbesWithAFreshItem(t *testing.T) {
	for law, opts := range laws {
		t.Run(law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := Memory{Items: map[string]ItemMemory{}}
				var bad []int
				for i := range 50 {
					bad = append(bad, i)
					m.Items[strconv.Itoa(i)] = ItemMemory{Failures: 2, Doubts: 1}
				}
				m.Lanes = inAnOutage(t, opts...).Lanes
				began, first := time.Now(), time.Duration(0)
				for r, err := range Stream(t.Context(), numbers(300), poisoned(bad...), append(opts, keyed(), WithMemory(m))...) {
					if err != nil {
						t.Fatal(err)
					}
					if r.Err == nil && first == 0 {
						first = time.Since(began)
					}
				}
				if first == 0 || first > 30*time.Second {
					t.Errorf("the first answer came after %v", first)
				}
			})
		})
	}
}

// inAnOutage returns the memory of a run that was killed while its breaker was open.
func inAnOutage(t *testing.T, opts ...Option) Memory {
	t.Helper()
	m := killed(t, time.Minute, downFrom(10*time.Second, forEver, errBroken), opts...)
	if !m.Lanes[DefaultLane].Answered {
		t.Fatalf("%+v", m)
	}
	return m
}

// The function of WithKeyOf is not called where nothing is remembered. A panic in it fails the
// item without a call.
func TestKeyIsAskedForWhereItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := WithKeyOf(func(i int) string {
			if i == 3 {
				explode()
			}
			return ""
		})
		if _, sum, err := judged(t.Context(), t, numbers(5), double, boom); err != nil || sum.Succeeded != 5 {
			t.Errorf("%v, %+v", err, sum)
		}
		results, sum, err := judged(t.Context(), t, numbers(5), double, boom, WithMemorySaver(new(shelf).save))
		var panicked *PanicError
		if err != nil || sum.Failed != 1 || !errors.As(results[3].Err, &panicked) || results[3].Calls != 0 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}
