package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// stoppedFor fails the test unless the run has stopped with the cause and no item has failed.
func stoppedFor(t *testing.T, results []Result[int, int], sum Summary, err, cause error) {
	t.Helper()
	var fault *Error
	if !errors.Is(err, ErrStopped) || !errors.Is(err, cause) || !errors.As(err, &fault) || errors.Is(err, ErrOutage) || errors.Is(err, ErrNoAnswer) {
		t.Fatalf("the run ended with %v", err)
	}
	if sum.Failed > 0 {
		t.Errorf("%d items failed: %+v", sum.Failed, sum)
	}
	for _, r := range results {
		if r.Err != nil && (!errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, ErrStopped) || !errors.Is(r.Err, cause)) {
			t.Errorf("item %d: %v", r.Index, r.Err)
		}
	}
}

// rows are the failures that stop a lane after some items, with none answered between:
// first if it was never answered, later else.
var rows = map[string]struct {
	err          error
	first, later int
}{
	"401": {errKey, 1, 5},
	"403": {errForbidden, 3, 5},
	"404": {errModel, 1, 5},
}

// A refused key or a missing model stops a lane that was never answered with the first item,
// and a 403 with the third. None of them has failed.
func TestRefusedKeyStopsANewLane(t *testing.T) {
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := judged(t.Context(), t, numbers(1000), byItem(always(c.err)), WithConcurrency(1), WithPlainLaw())
				stoppedFor(t, results, sum, err, c.err)
				if sum.Counters.Calls != uint64(c.first) {
					t.Errorf("it stopped after %d calls, want %d", sum.Counters.Calls, c.first)
				}
			})
		})
	}
}

// An answered lane stops after five such items in a row. The answer may be of this run, of a
// lane memory, or asserted by WithAnsweredBefore.
func TestRefusedKeyStopsAnAnsweredLane(t *testing.T) {
	for name, c := range rows {
		for _, how := range []string{"this run", "memory", "said"} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					good, opts := 0, []Option{WithConcurrency(1)}
					switch how {
					case "this run":
						good = 50
					case "memory":
						opts = append(opts, WithMemory(answeredBefore(t)))
					case "said":
						opts = append(opts, WithAnsweredBefore())
					}
					ends := func(i int) error {
						if i < good {
							return nil
						}
						return c.err
					}
					results, sum, err := judged(t.Context(), t, numbers(1000), byItem(ends), opts...)
					stoppedFor(t, results, sum, err, c.err)
					if got := int(sum.Counters.Calls) - good; got != c.later || sum.Succeeded != good {
						t.Errorf("it stopped after %d calls that were refused, want %d; %+v", got, c.later, sum)
					}
				})
			})
		}
	}
}

// answeredBefore returns the memory of a run that was answered.
func answeredBefore(t *testing.T) Memory {
	t.Helper()
	shared := newShared(t)
	defer shared.Close()
	if _, _, err := judged(t.Context(), t, numbers(20), byItem(always(nil)), WithShared(shared)); err != nil {
		t.Fatal(err)
	}
	m, err := shared.Save(t.Context())
	if err != nil || !m.Lanes[DefaultLane].Answered {
		t.Fatalf("%v, %+v", err, m.Lanes)
	}
	return m
}

// Four such items in a row fail once the next item is answered. The run goes on, however many
// rows there are.
func TestSomeForbiddenItemsFail(t *testing.T) {
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := func(i int) error {
					if i > 0 && i%5 != 0 {
						return c.err
					}
					return nil
				}
				results, sum, err := judged(t.Context(), t, numbers(200), byItem(ends), WithConcurrency(1), WithPlainLaw())
				if err != nil || sum.Failed != 160 || sum.Succeeded != 40 {
					t.Fatalf("%v, %+v", err, sum)
				}
				for _, r := range results {
					if r.Err != nil && (r.Attempts != 1 || r.Calls != 1 || errors.Is(r.Err, ErrNotRun)) {
						t.Errorf("item %d: %v, %d attempts in %d calls", r.Index, r.Err, r.Attempts, r.Calls)
					}
				}
			})
		})
	}
}

// One forbidden item in forty stops nothing while many calls are under way. A refusal comes after
// the answers of its time: one that is the lane's very first word stops it.
func TestForbiddenItemsAmongMany(t *testing.T) {
	for law, opts := range laws {
		for name, c := range rows {
			t.Run(name+", "+law, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ends := func(i int) error {
						if i%40 == 39 {
							time.Sleep(time.Millisecond)
							return c.err
						}
						return nil
					}
					_, sum, err := judged(t.Context(), t, numbers(1000), byItem(ends), opts...)
					if err != nil || sum.Failed != 25 || sum.Succeeded != 975 {
						t.Errorf("%v, %+v", err, sum)
					}
				})
			})
		}
	}
}

// An answer between the refusals clears a key, and so does a refusal whose words blame its
// item. A 400 does not.
func TestWhatClearsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		between error
		clears  bool
	}{
		"an answer":     {nil, true},
		"a 400":         {errParameter, false},
		"too long":      {errTooLong, true},
		"filtered":      {errFiltered, true},
		"another model": {errModel, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := func(i int) error {
					if i%2 == 1 {
						return c.between
					}
					return errKey
				}
				results, sum, err := judged(t.Context(), t, numbers(100), byItem(ends), WithConcurrency(1), WithAnsweredBefore(), WithPlainLaw())
				if c.clears {
					if err != nil || sum.Succeeded+sum.Failed != 100 || sum.Failed < 50 {
						t.Errorf("%v, %+v", err, sum)
					}
					return
				}
				if !errors.Is(err, ErrStopped) || !errors.Is(err, Unauthorized) || sum.Counters.Calls != 9 {
					t.Fatalf("%v after %d calls", err, sum.Counters.Calls)
				}
				for _, r := range results {
					if errors.Is(r.Err, Unauthorized) && !errors.Is(r.Err, ErrNotRun) {
						t.Errorf("item %d has failed: %v", r.Index, r.Err)
					}
				}
			})
		})
	}
}

// A key that is revoked with 64 calls under way stops the lane at the fifth refusal. No item
// fails, though many more calls are refused.
func TestKeyIsRevokedWithManyUnderWay(t *testing.T) {
	for law, opts := range laws {
		t.Run(law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, refused := time.Now(), new(journal)
				fn := func(ctx context.Context, i int) (int, error) {
					if err := pause(ctx, 2*time.Second+time.Duration(i%64)*10*time.Millisecond); err != nil {
						return 0, err
					}
					if time.Since(began) > 30*time.Second {
						refused.add("")
						return 0, errKey
					}
					return i, nil
				}
				results, sum, err := judged(t.Context(), t, numbers(5000), fn, opts...)
				stoppedFor(t, results, sum, err, errKey)
				stoppedAt := refused.times[4]
				for _, at := range refused.times {
					if at.Sub(stoppedAt) > 3*time.Second {
						t.Errorf("a call ended %v after the lane should have stopped", at.Sub(stoppedAt))
					}
				}
				if n := len(refused.times); n < 25 || n > 64+5 || sum.Succeeded == 0 {
					t.Errorf("%d calls were refused, %+v", n, sum)
				}
			})
		})
	}
}

// A key that is refused for 20 calls stops the run, though it would work after that. Five
// different items in a row are enough.
func TestKeyThatIsWellAgainHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(i int) error {
			if i >= 100 && i < 120 {
				return errKey
			}
			return nil
		}
		results, sum, err := judged(t.Context(), t, numbers(300), byItem(ends), WithConcurrency(1), WithPlainLaw())
		stoppedFor(t, results, sum, err, errKey)
		if sum.Succeeded != 100 || sum.Counters.Calls != 105 {
			t.Errorf("%+v", sum)
		}
	})
}

// The refused key of one lane does not end a pool of two. Its items go out on the other lane,
// and none fails.
func TestRefusedKeyOfOneLaneOfTwo(t *testing.T) {
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(journal)
				fn := func(ctx context.Context, i int) (int, error) {
					if err := pause(ctx, time.Second); err != nil {
						return 0, err
					}
					if log.add(LaneFrom(ctx)); LaneFrom(ctx) == "one" {
						return 0, c.err
					}
					return i, nil
				}
				results, sum, err := judged(t.Context(), t, numbers(100), fn, twoLanes, WithConcurrency(2), WithPlainLaw())
				if err != nil || sum.Succeeded != 100 || log.lanes["one"] > c.first+1 {
					t.Fatalf("%v, %+v, %d calls were refused", err, sum, log.lanes["one"])
				}
				for _, r := range results {
					if len(r.Failures) > 0 && (r.Lane != "other" || !errors.Is(c.err, r.Failures[0].Kind)) {
						t.Errorf("item %d on %s: %+v", r.Index, r.Lane, r.Failures)
					}
				}
			})
		})
	}
}

// A run that keeps going fails the items of a 403. A refused key and a missing model stop
// the lane all the same.
func TestKeepGoingAndKeys(t *testing.T) {
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				again := 0 // calls of which the hook heard that their item is not over
				hook := WithCalls(func(c Call) {
					if c.Again {
						again++
					}
				})
				results, sum, err := judged(t.Context(), t, numbers(50), byItem(always(c.err)), WithConcurrency(1), WithKeepGoing(), WithPlainLaw(), hook)
				if name == "403" {
					if err != nil || sum.Failed != 50 || again > 0 {
						t.Errorf("%v, %+v, %d items go on", err, sum, again)
					}
					return
				}
				stoppedFor(t, results, sum, err, c.err)
			})
		})
	}
}

// An input shorter than a row stops a lane that was never answered. On an answered lane its
// items fail.
func TestFewRefusedItems(t *testing.T) {
	for _, items := range []int{1, 2, 4} {
		for _, before := range []bool{false, true} {
			for name, c := range rows {
				t.Run(fmt.Sprint(items, " before ", before, " ", name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						opts := []Option{WithConcurrency(1), WithPlainLaw()}
						if before {
							opts = append(opts, WithAnsweredBefore())
						}
						results, sum, err := judged(t.Context(), t, numbers(items), byItem(always(c.err)), opts...)
						if !before {
							stoppedFor(t, results, sum, err, c.err)
							return
						}
						if err != nil || sum.Failed != items {
							t.Errorf("%v, %+v", err, sum)
						}
					})
				})
			}
		}
	}
}

// Many forbidden items among others stop no lane, though a 403 comes long before an answer: a
// row of them must be as long as there are calls under way.
func TestManyForbiddenItemsAreNamed(t *testing.T) {
	for _, every := range []int{3, 10, 40} {
		for _, beside := range []int{1, 16, 64} {
			t.Run(fmt.Sprintf("one in %d, %d at once", every, beside), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fn := func(ctx context.Context, i int) (int, error) {
						if i%every == every-1 {
							return 0, cmp.Or[error](pause(ctx, 5*time.Millisecond), errForbidden)
						}
						return i, pause(ctx, 300*time.Millisecond)
					}
					_, sum, err := judged(t.Context(), t, numbers(1000), fn, WithConcurrency(beside))
					if err != nil || sum.Failed != 1000/every || sum.NotRun > 0 {
						t.Errorf("%v, %d failed and %d were not run", err, sum.Failed, sum.NotRun)
					}
				})
			})
		}
	}
}

// A key that is revoked by a 403 stops the lane, and fails none of the calls under way.
func TestRevokedByAForbidding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		fn := func(ctx context.Context, i int) (int, error) {
			if time.Since(began) > 5*time.Second {
				return 0, cmp.Or[error](pause(ctx, 5*time.Millisecond), errForbidden)
			}
			return i, pause(ctx, 300*time.Millisecond)
		}
		_, sum, err := judged(t.Context(), t, numbers(10_000), fn, WithConcurrency(64), WithPlainLaw())
		if !errors.Is(err, ErrStopped) || sum.Failed > 0 || int(sum.Counters.Calls)-sum.Succeeded > 2*64 {
			t.Errorf("%v, %d failed, %d calls were refused", err, sum.Failed, int(sum.Counters.Calls)-sum.Succeeded)
		}
	})
}
